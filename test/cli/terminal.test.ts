/** What is different where somebody sits at a terminal: colours, progress, questions. `script` makes one. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, ran } from '../support/cli.ts'

const hasScript =
  process.platform === 'linux' && process.env['PATH']!.split(delimiter).some((dir) => existsSync(join(dir, 'script')))
const ask = `workflow:
  - id: answer
    type: llm
    config:
      model: "demo:assistant"
      stream: true
      tools:
        - { name: calculator, approval: true }
        - { name: askUser, client: true, parameters: { question: string } }
`

/** The command on a terminal of its own: what it shows, and a keyboard. */
function onTerminal(args: string[], { cwd, env = {} }: { cwd: string; env?: Record<string, string> }) {
  const quoted = [process.execPath, resolve('bin/millrace.js'), ...args].map((arg) => `'${arg}'`).join(' ')
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
    until: (text: string) => expect.poll(() => shown, { timeout: 10_000, interval: 10 }).toContain(text),
    type: (keys: string) => child.stdin.write(keys),
  }
}

describe.skipIf(!hasScript)('on a terminal', () => {
  test('an approval is asked for: yes runs the tool, anything else does not', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    for (const [keys, words] of [
      ['y\n', '12*7 = 84.'],
      ['\n', 'not allowed'],
    ] as const) {
      const command = onTerminal(['run', 'a', '-m', 'What is 12*7?'], { cwd })
      await command.until('Allow calculator {"expression":"12*7"}? [y/N]')
      command.type(keys)
      expect(await command.exit).toBe(0)
      expect(command.shown).toContain(words)
    }
  })

  test('what a tool of the client gives is asked for', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    const command = onTerminal(['run', 'a', '-m', 'Use the tool askUser with question "Which town?"'], { cwd })
    await command.until('askUser {"question":"Which town?"} runs in the client.')
    command.type('{"town": "Ghent"}\n')
    expect(await command.exit).toBe(0)
    expect(command.shown).toContain('askUser gave {"town":"Ghent"}.')
  })

  test('Ctrl-C at a question stops the run; a closed keyboard as well', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    for (const [key, code] of [
      ['\u0003', 130],
      ['\u0004', 1],
    ] as const) {
      const command = onTerminal(['run', 'a', '-m', 'What is 12*7?'], { cwd })
      await command.until('[y/N]')
      command.type(key)
      expect(await command.exit).toBe(code)
      expect(command.shown).toContain('aborted: ')
    }
    const runs = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as RunRow[]
    expect(runs.map(({ status }) => status)).toEqual(['aborted', 'aborted'])
  })

  test('the step that runs is shown in a line that is gone before the answer', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    const command = onTerminal(['run', 'a', '-m', 'Hello'], { cwd, env: { NO_COLOR: '1' } })
    expect(await command.exit).toBe(0)
    const gone = '\r\u001b[K'
    expect(command.shown).toContain(`… answer  llm${gone}… answer/1  model-call${gone}I am the Millrace demo model`)
    expect(command.shown).toMatch(/\.\r\ncompleted; /)
  })

  test('colours are for terminals, and not where NO_COLOR is set', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    await ran(['run', 'a', '-m', 'Hello'], { cwd })
    const shown = async (env: Record<string, string>) => {
      const command = onTerminal(['ps'], { cwd, env })
      expect(await command.exit).toBe(0)
      return command.shown
    }
    expect(await shown({})).toContain('\u001b[32mcompleted\u001b[39m')
    expect(await shown({ NO_COLOR: '1' })).not.toContain('\u001b')
    expect((await ran(['ps'], { cwd, env: { NO_COLOR: '', FORCE_COLOR: '1' } })).out).not.toContain('\u001b')
  })
})
