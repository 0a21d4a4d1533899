/** Tab: what the program offers. How each shell asks for it is in `completion.all.test.ts`. */
import { describe, expect, test } from 'vitest'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { folder, ran } from '../support/cli.ts'

const demo = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant" } }]\n'

const files = { 'agents/assistant.yaml': demo, 'agents/panel.yml': demo, 'agents/notes.txt': '' }

async function offered(cwd: string, ...words: string[]) {
  const { code, out, err } = await ran(['__complete', ...words], { cwd })
  expect([code, err]).toEqual([0, ''])
  return out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]!]))
}

describe('millrace completion', () => {
  test('commands, options, their values, agents and runs are offered', { timeout: 60_000 }, async () => {
    const cwd = folder(files)
    expect(await offered(cwd, '')).toEqual(expect.arrayContaining(['init', 'run', 'show', 'completion']))
    expect(await offered(cwd, 'se')).toEqual(['serve'])
    expect(await offered(cwd, 'run', 'p')).toEqual(['panel', ':files'])
    expect(await offered(cwd, 'run', '-m', 'x', 'ass')).toEqual(['assistant', ':files'])
    expect(await offered(cwd, 'run', '--dir', 'nowhere', '')).toEqual([':files'])
    expect(await offered(cwd, 'run', '--fo')).toEqual(['--format'])
    expect(await offered(cwd, 'run', '--format', '')).toEqual([...builtinWires.keys()])
    expect(await offered(cwd, 'logs', 'x', '--type', 'text-')).toEqual(['text-start', 'text-delta', 'text-end'])
    expect(await offered(cwd, 'ps', '--status', 'su')).toEqual(['suspended'])
    expect(await offered(cwd, 'ps', '--agent', 'pan')).toEqual(['panel'])
    expect(await offered(cwd, 'completion', '')).toEqual(['bash', 'zsh', 'fish'])
    expect(await offered(cwd, 'run', 'panel', '--file', 'age')).toEqual([':files'])
    expect(await offered(cwd, 'chat', 'pan')).toEqual(['panel', ':files'])
    expect(await offered(cwd, 'answer', 'x', '')).toEqual(['approve', 'deny'])
    // What takes free text, and what is too much, gets nothing.
    for (const words of [
      ['run', '-m', ''],
      ['run', 'panel', ''],
      ['show', ''],
      ['nonsense', ''],
    ]) {
      expect(await offered(cwd, ...words)).toEqual([])
    }
    await ran(['run', 'assistant', '-m', 'Hi'], { cwd })
    expect(await offered(cwd, 'show', 'run_')).toEqual([expect.stringMatching(/^run_\w+$/)])
    expect(await offered(cwd, 'chat', '--thread', '')).toEqual([expect.stringMatching(/^thread_\w+$/)])
    expect(await offered(cwd, 'logs', '--data', 'nowhere', '')).toEqual([])
    // Only what waits can be answered.
    expect(await offered(cwd, 'answer', 'run_')).toEqual([])
    expect(await offered(cwd, 'verify', '')).toEqual([expect.stringMatching(/^run_/), ':files'])
  })

  test('an unknown shell is exit 2 and names those there are', async () => {
    const { code, err } = await ran(['completion', 'powershell'])
    expect([code, err]).toEqual([2, expect.stringContaining('bash, zsh, fish')])
  })
})
