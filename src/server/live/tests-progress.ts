/** The run of tests as events: its whole state after each change, until it has ended. A slow reader gets fewer of them. */
import { fromPromises, type BodySource } from '../../delivery/streamed-body.ts'
import type { TestDesk, TestsRun } from '../../regress/test-desk.ts'
import { watchSilence } from '../http/sse-response.ts'

const keepAlive = ': keep-alive\n\n'

interface Progress extends Pick<TestDesk, 'onChange'> {
  /** As the reader may see it. */
  run(): TestsRun | undefined
}

export function createProgressSource({ run: current, onChange }: Progress, keepAliveMs: number): BodySource {
  let isDue = true
  let isOver = false
  let asked: PromiseWithResolvers<string | undefined> | undefined
  const leave = onChange(() => {
    isDue = true
    settle()
  })
  const silence = watchSilence(keepAliveMs, () => source.sendKeepAlive?.(keepAlive))

  function settle(): void {
    if (asked === undefined || (!isDue && !isOver)) return
    const { resolve } = asked
    asked = undefined
    resolve(isOver ? undefined : take())
  }

  function take(): string {
    const run = current()
    isDue = false
    if (run === undefined || run.endedAt !== undefined) end()
    silence.wrote()
    return `event: tests\ndata: ${JSON.stringify(run ?? null)}\n\n`
  }

  function end(): void {
    isOver = true
    leave()
    silence.stop()
  }

  const source: BodySource = {
    next: fromPromises(() => {
      asked = Promise.withResolvers()
      const { promise } = asked
      settle()
      return promise
    }),
    cancel() {
      end()
      settle()
    },
  }
  return source
}
