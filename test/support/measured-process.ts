/** Starts `measured-server.ts` in a process of its own, killed when the test ends. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import type { Measured } from './measured-server.ts'

/** `dir` holds the agents; `endpoint` is what they may call as `up:`. */
export async function startMeasuredProcess(dir: string, endpoint: string) {
  const child = fork('test/support/measured-server.ts', [dir, endpoint], {
    execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
    env: { PATH: process.env['PATH'] },
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return {
    url,
    async measure(): Promise<Measured> {
      child.send('measure')
      return ((await once(child, 'message')) as [Measured])[0]
    },
  }
}
