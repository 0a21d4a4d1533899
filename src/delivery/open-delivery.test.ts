import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type DeliveryContext, createAnswerSource, type SourceOptions } from './open-delivery.ts'
import { nextPiece } from './streamed-body.ts'

/** An answer whose protocol throws: at each batch, or when the log cannot be read. */
function createBroken(next: () => ReturnType<SourceOptions<string>['reader']['next']>) {
  const told: unknown[] = []
  const throws = () => {
    throw new Error('broken')
  }
  const runtime = { onLost: () => () => undefined }
  const context = { runtime, keepAliveMs: 15_000, onError: () => undefined } as unknown as DeliveryContext
  const { source } = createAnswerSource<string>(context, {
    runId: 'r',
    keepAlive: { first: ': ping\n\n', later: ': ping\n\n' },
    from: 0,
    encoder: { state: 'open', encode: throws, write: throws, skip: throws, take: throws, fail: throws },
    reader: { peek: next, next, take: (...told) => void next().then(...told), close: () => void told.push('closed') },
    release: (how) => void told.push(how),
  })
  source.onEnd!(() => void told.push('ended'))
  return { source, told }
}

const failing = {
  'its protocol throws': async () => ({ done: false as const, value: [] }),
  'its log cannot be read': () => Promise.reject(new Error('unreadable')),
}

describe('createAnswerSource', () => {
  test.each(Object.entries(failing))(
    'an answer that breaks off because %s lets its client go, once',
    async (_, next) => {
      const { source, told } = createBroken(next)
      await expect(nextPiece(source)).rejects.toThrow('broken')
      expect(told).toEqual(['closed', { finished: false }, 'ended'])
      source.cancel()
      expect(told).toHaveLength(3)
    },
  )

  test('entries that the protocol does not show do not put off the keep-alive', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const pings: string[] = []
    const batches: ((batch: { done: false; value: never[] }) => void)[] = []
    const runtime = { onLost: () => () => undefined }
    const context = { runtime, keepAliveMs: 1000, onError: () => expect.unreachable() } as unknown as DeliveryContext
    const next = () => new Promise<never>(() => undefined)
    const { source } = createAnswerSource<string>(context, {
      runId: 'r',
      keepAlive: { first: ': first', later: ': later' },
      from: 0,
      encoder: {
        state: 'open',
        encode: () => '',
        write: () => undefined,
        skip: () => undefined,
        take: () => '',
        fail: () => '',
      },
      reader: { peek: next, next, take: (give) => void batches.push(give as never), close: () => undefined },
    })
    source.sendKeepAlive = (piece) => void pings.push(piece)
    source.next(
      () => expect.unreachable(),
      () => expect.unreachable(),
    )
    for (let i = 0; i < 25; i++) {
      await vi.advanceTimersByTimeAsync(100)
      batches.shift()!({ done: false, value: [] })
    }
    expect(pings).toEqual([': first', ': first'])
    source.cancel()
  })
})
