/** Tab in each shell: its own way of asking the command. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
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
