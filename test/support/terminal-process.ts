/** The built command on a pseudo-terminal, which `script` makes. Needs `npm run build`. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { expect, onTestFinished } from 'vitest'

/** Tests that need it are skipped by name where it is not there. */
export const hasScript =
  process.platform === 'linux' && process.env['PATH']!.split(delimiter).some((dir) => existsSync(join(dir, 'script')))

/** The command on a terminal of its own: what it shows, and a keyboard. */
export function onTerminal(
  args: string[],
  { cwd, env = {}, columns }: { cwd: string; env?: Record<string, string>; columns?: number },
) {
  const command = [process.execPath, resolve('bin/millrace.js'), ...args].map((arg) => `'${arg}'`).join(' ')
  const quoted = columns === undefined ? command : `stty cols ${columns}; ${command}`
  const { PATH, HOME } = process.env
  const child = spawn('script', ['-qefc', quoted, '/dev/null'], {
    cwd,
    env: { PATH, HOME, TERM: 'xterm', SHELL: '/bin/sh', MILLRACE_DEMO_DELAY_MS: '0', ...env },
  })
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text))
  const exit = new Promise<number | null>((done) => child.on('close', done))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exit
  })
  return {
    exit,
    get shown() {
      return shown
    },
    until: (text: string) => expect.poll(() => shown, { interval: 10 }).toContain(text),
    type: (keys: string) => child.stdin.write(keys),
  }
}
