/** What is different where somebody sits at a terminal: colours, progress, questions. A real one is in `terminal.all.test.ts`. */
import { describe, expect, test } from 'vitest'
import { widthOf } from '../../src/cli/terminal/table.ts'
import type { RunRow } from '../../src/part/log.ts'
import { folder, ran } from '../support/cli.ts'
import { askingAgent as ask, onTerminal } from '../support/terminal.ts'

describe('on a terminal', () => {
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

  // CSI twice, as two and as one character; a title; what writes over the line; what is shown in another order.
  const hostile = '\u001b[31mred\u009b2J \u001b]0;title\u0007 over\rwritten \u202egnp.exe\u007f'
  const harmless = '\\u001b[31mred\\u009b2J \\u001b]0;title\\u0007 overwritten \\u202egnp.exe\\u007f'
  const obeyed = /[^\P{Cc}\n\r\t]|\u202e|over\r(?!\n)/u

  test(
    'nothing that a model said is a command to the terminal; in a pipe it is left byte for byte',
    { timeout: 60_000 },
    async () => {
      const cwd = folder({ 'agents/a.yaml': ask.replace('approval: true', 'approval: false') })
      const env = { NO_COLOR: '1' }
      const shown = async (...args: string[]) => {
        const command = onTerminal(args, { cwd, env, columns: 500 })
        expect(await command.exit).toBe(0)
        // The progress of a run is ours.
        return command.shown.replaceAll('\r\u001b[K', '').replaceAll('\r\n', '\n')
      }
      const piped = await ran(['run', 'a', '-m', hostile], { cwd })
      expect(piped.out).toContain(`You said: "${hostile}"`)
      const run = await shown('run', 'a', '-m', hostile, '--data', 'none')
      expect(run).toContain(`You said: "${harmless}"`)
      expect(run).not.toMatch(obeyed)

      const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
      for (const args of [
        ['show', id],
        ['show', id, '--json'],
        ['logs', id],
        ['logs', id, '--json'],
        ['ps'],
        ['ps', '--json'],
      ]) {
        const text = await shown(...args)
        expect([args, obeyed.exec(text)?.[0]]).toEqual([args, undefined])
        expect([args, args[0] === 'ps' || text.includes('\\u009b2J')]).toEqual([args, true])
      }
      const json = await shown('show', id, '--json')
      expect(JSON.parse(json)).toEqual(JSON.parse((await ran(['show', id, '--json'], { cwd })).out))
      expect((await ran(['show', id, '--json'], { cwd })).out).toContain('\u009b2J')
      // Errors are for people wherever they go.
      const error = await ran(['show', hostile], { cwd })
      expect([error.code, error.err]).toEqual([2, expect.stringContaining(`There is no run ${harmless}.`)])
      expect(error.err).not.toMatch(obeyed)
    },
  )

  test('what is asked for cannot look like something else', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    const command = onTerminal(['run', 'a', '-m', `Use the tool askUser with question "\u202etxt\u009b1A"`], { cwd })
    await command.until(String.raw`askUser {"question":"\u202etxt\u009b1A"} runs in the client.`)
    command.type('no\n')
    expect(await command.exit).toBe(0)
  })

  test('on a narrow terminal a run of ps is one line, and what is left of its id still names it', async () => {
    const cwd = folder({ 'agents/a.yaml': ask })
    for (const message of [
      '日本語のとても長いタイトル。'.repeat(4),
      'A title that is rather long for a terminal like this one',
    ]) {
      await ran(['run', 'a', '-m', message], { cwd })
    }
    const command = onTerminal(['ps'], { cwd, env: { NO_COLOR: '1' }, columns: 76 })
    expect(await command.exit).toBe(0)
    const lines = command.shown.trimEnd().split('\r\n')
    expect(lines).toHaveLength(3)
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(76)
    expect(lines[1]).toMatch(/ A title that.*…$/)
    expect(lines[2]).toMatch(/ 日本語の.*…$/)
    const [beginning] = lines[1]!.split(' ')
    expect(beginning).toMatch(/^run_[\da-f]{8}$/)
    expect((await ran(['show', beginning!], { cwd })).out).toContain(`\n`)
    const wide = onTerminal(['ps'], { cwd, env: { NO_COLOR: '1' }, columns: 200 })
    expect(await wide.exit).toBe(0)
    expect(wide.shown).toMatch(/\nrun_[\da-f]{32} /)
  })
})
