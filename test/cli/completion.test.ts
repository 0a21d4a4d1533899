/** Tab: what the program offers, and each shell's own way of asking for it. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { folder, ran } from '../support/cli.ts'

const demo = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant" } }]\n'
const has = (shell: string) => process.env['PATH']!.split(delimiter).some((dir) => existsSync(join(dir, shell)))

/** A folder with agents, and a \`millrace\` on the PATH. */
function setUp() {
  const cwd = folder({
    'agents/assistant.yaml': demo,
    'agents/panel.yml': demo,
    'agents/two words.yaml': demo,
    'agents/$(touch pwned).yaml': demo,
    'agents/notes.txt': '',
    'bin/millrace': `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/millrace.js')}' "$@"\n`,
  })
  chmodSync(join(cwd, 'bin/millrace'), 0o755)
  const env = { ...process.env, PATH: join(cwd, 'bin') + delimiter + process.env['PATH'], HOME: cwd }
  const inShell = (shell: string, args: string[], script: string) => {
    writeFileSync(join(cwd, 'script'), script)
    return execFileSync(shell, [...args, join(cwd, 'script')], { cwd, env, encoding: 'utf8' })
  }
  return { cwd, inShell }
}

async function offered(cwd: string, ...words: string[]) {
  const { code, out, err } = await ran(['__complete', ...words], { cwd })
  expect([code, err]).toEqual([0, ''])
  return out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]!]))
}

test('commands, options, their values, agents and runs are offered', { timeout: 60_000 }, async () => {
  const { cwd } = setUp()
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

describe.skipIf(!has('bash'))('bash', () => {
  test('the script is right and completes; names of files are never evaluated', async () => {
    const { cwd, inShell } = setUp()
    const { out } = await ran(['completion', 'bash'])
    writeFileSync(join(cwd, 'completion.bash'), out)
    execFileSync('bash', ['-n', join(cwd, 'completion.bash')])
    const said = inShell(
      'bash',
      ['--norc'],
      `source completion.bash
      complete -p millrace
      try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _millrace; printf '%s;' "\${COMPREPLY[@]}"; echo; }
      try millrace nothing; try millrace sh; try millrace run ass; try millrace run --form; try millrace run ''`,
    )
    expect(said.split('\n')).toEqual([
      'complete -F _millrace millrace',
      ';',
      'show;',
      'assistant;',
      '--format;',
      String.raw`\$\(touch\ pwned\);assistant;panel;two\ words;`,
      '',
    ])
    expect(existsSync(join(cwd, 'pwned'))).toBe(false)
  })
})

describe.skipIf(!has('zsh'))('zsh', () => {
  test('the script is right and completes', async () => {
    const { cwd, inShell } = setUp()
    const { out } = await ran(['completion', 'zsh'])
    writeFileSync(join(cwd, 'completion.zsh'), out)
    execFileSync('zsh', ['-n', join(cwd, 'completion.zsh')])
    const said = inShell(
      'zsh',
      ['-f'],
      `compdef() { echo compdef $@ }
      source completion.zsh
      _describe() { print -l -- "\${(@P)2}" }
      _files() { echo files }
      words=(millrace run ass) CURRENT=3; _millrace
      words=(millrace sh) CURRENT=2; _millrace`,
    )
    expect(said).toMatch(/^compdef _millrace millrace\nassistant:agent\nfiles\nshow:Show the steps, .*\n$/)
  })
})

describe.skipIf(!has('fish'))('fish', () => {
  test('the script is right and completes', () => {
    const { inShell } = setUp()
    const said = inShell(
      'fish',
      ['-N'],
      `millrace completion fish | source
      complete -C 'millrace sh'
      complete -C 'millrace run pan'
      complete -C 'millrace run --format t'`,
    )
    expect(said).toMatch(/^show\tShow the steps, .*\npanel\tagent\ntext\n$/)
  })
})
