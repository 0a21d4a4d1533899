/** `GET /api/live`: rows of runs, entries of some runs and reloads of agents over one connection. */
import { get, type IncomingMessage } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow, Store } from '../../src/part/log.ts'
import { agent, type EngineOptions } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

type Frame =
  | { event: 'entry'; id: string; data: { run: string; entry: Entry } }
  | { event: 'row'; data: RunRow }
  | { event: 'gone'; data: { run: string; reason: string } }
  | { event: 'agents'; data: object }
type EntryFrame = Extract<Frame, { event: 'entry' }>

async function start(options: Partial<EngineOptions>, handler = {}) {
  const server = await startServer({ agents: { a: agent() }, ...options }, handler)
  onTestFinished(() => server.close())

  async function watch(search: string, headers: Record<string, string> = {}) {
    const leave = new AbortController()
    const response = await fetch(`${server.url}/api/live?${search}`, { headers, signal: leave.signal })
    expect(response.status, search).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    onTestFinished(() => leave.abort())
    const frames: Frame[] = []
    let rest = ''
    const more = async (): Promise<boolean> => {
      const { done, value = '' } = await reader.read()
      const parts = (rest + value).split('\n\n')
      rest = parts.pop()!
      frames.push(...parts.flatMap(toFrame))
      return !done
    }
    return {
      frames,
      leave: () => leave.abort(),
      get entries() {
        return frames.filter((each): each is EntryFrame => each.event === 'entry').map(({ data }) => data.entry)
      },
      async until(fits: (frame: Frame) => boolean): Promise<Frame> {
        for (;;) {
          const found = frames.find(fits)
          if (found !== undefined) return found
          if (!(await more())) throw new Error(`it ended: ${JSON.stringify(frames)}`)
        }
      },
      async ended() {
        while (await more());
      },
      async silent(): Promise<string> {
        while (!rest.includes(': keep-alive') && (await more()));
        return rest
      },
    }
  }
  return { ...server, watch }
}

function toFrame(part: string): Frame[] {
  const fields = Object.fromEntries(part.split('\n').map((line) => line.split(/: (.*)/su))) as Record<string, string>
  return fields['data'] === undefined ? [] : [{ ...fields, data: JSON.parse(fields['data']) as object } as Frame]
}

test('a reader that does not read costs what its socket holds; then it gets all of it', async () => {
  let pulled = 0
  const count = (store: Store): Store => ({
    ...store,
    log: {
      ...store.log,
      async *read(run, options) {
        for await (const batch of store.log.read(run, options) as AsyncIterable<Entry[]>) {
          pulled += batch.length
          yield batch
        }
      },
    },
  })
  const { url, store } = await start({ wrapStore: count })
  const startEntry: Entry = {
    seq: 1,
    timestamp: 0,
    step: '',
    type: 'run-start',
    runId: 'r',
    agent: 'a',
    pipeline: '',
    threadId: 't',
    protocol: 'api',
    input: {},
  }
  await store.log.append('r', 1, [startEntry])
  const response = await new Promise<IncomingMessage>((resolve) => get(`${url}/api/live?runs=r~0&rows=1`, resolve))
  onTestFinished(() => void response.destroy())
  const data = 'x'.repeat(30_000)
  for (let seq = 2; seq <= 1000; seq++) {
    await store.log.append('r', 1, [{ seq, timestamp: 0, step: '', type: 'data', name: 'd', data }])
  }
  for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
  expect(pulled).toBeLessThan(700)
  const seqs: number[] = []
  let rest = ''
  for await (const bytes of response.setEncoding('utf8')) {
    const frames = (rest + (bytes as string)).split('\n\n')
    rest = frames.pop()!
    for (const frame of frames.flatMap(toFrame)) if (frame.event === 'entry') seqs.push(frame.data.entry.seq)
    if (seqs.at(-1) === 1000) break
  }
  expect(seqs).toEqual(Array.from({ length: 1000 }, (_, i) => i + 1))
})
