/** The built command on a real terminal, which `script` makes. What is printed on one is in `terminal.test.ts`. */
import { describe, expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'
import { hasScript, onTerminal } from '../support/terminal-process.ts'
import { askingAgent } from '../support/terminal.ts'

const escape = String.fromCharCode(27)

describe.skipIf(!hasScript)('on a terminal', () => {
  test('a question is asked, and the keyboard answers it; Ctrl-C at a chat without words leaves it', async () => {
    const cwd = folder({ 'agents/a.yaml': askingAgent })
    const chat = onTerminal(['chat'], { cwd, env: { NO_COLOR: '1' }, columns: 120 })
    await chat.until('a> ')
    chat.type('What is 12*7?\r')
    await chat.until('Allow calculator {"expression":"12*7"}? [y/N]')
    chat.type('y\r')
    await chat.until('12*7 = 84.\r\n')
    // The prompt is there, and nothing behind it.
    await expect.poll(() => chat.shown).toMatch(new RegExp(`a> ${escape}\\[\\d+G$`, 'u'))
    chat.type('\u0003')
    expect(await chat.exit).toBe(130)
  })

  test('what a callback prints stands on lines of its own, and the answer goes on behind it', async () => {
    const cwd = folder({
      'agents/plain.yaml': `workflow:\n  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true } }\n`,
      'agents/millrace.config.mjs': `export default { callbacks: { chunk: () => console.log('(a piece)') } }\n`,
      'agents/a.yaml': `workflow:\n  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, onChunk: chunk } }\n`,
    })
    const command = onTerminal(['run', 'a', '-m', 'Hi there'], { cwd })
    expect(await command.exit).toBe(0)
    // Without the codes that take back the line of the step that runs.
    const lines = command.shown.replaceAll('\r', '').replaceAll('\u001b[K', '').split('\n')
    expect(lines.filter((line) => line === '(a piece)').length).toBeGreaterThan(2)
    for (const line of lines) if (line.includes('(a piece)')) expect(line).toBe('(a piece)')
    const { out } = await ran(['run', 'plain', '-m', 'Hi there'], { cwd })
    const words = lines.filter((line) => !line.includes('(a piece)')).join('')
    expect(words).toContain(out.trim())
  })

  test('a second Ctrl-C kills, and the prompt of the shell is on a line of its own', async () => {
    const cwd = folder({
      'agents/a.yaml': 'workflow:\n  - { id: stuck, type: stuck, config: {} }\n',
      'agents/millrace.config.mjs': `export default { steps: { stuck: () => {
      console.error('stuck'); setInterval(() => {}, 1000); return new Promise(() => {}) } } }`,
    })
    const command = onTerminal(['run', 'a', '-m', 'Hi'], { cwd })
    await command.until('stuck\r\n')
    command.type('\u0003')
    await command.until('Ctrl-C again to kill')
    command.type('\u0003')
    expect(await command.exit).toBe(130)
    expect(command.shown).toMatch(/\r\n$/)
    expect((await ran(['ps'], { cwd })).out).toContain(' running (no server) ')
  })
})
