/** A stranger's file on the command line: what it would set to work is shown, and nobody's program runs before somebody has agreed. */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { folder, ran } from '../support/cli.ts'
import { onTerminal } from '../support/terminal.ts'

const own = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant" } }]\n'

/** A folder with an agent, and a run of it that is not its own any more: it starts a program. It waits for an answer, or has ended. */
async function stranger(waits = false) {
  const cwd = folder({ 'agents/a.yaml': own })
  const mark = join(cwd, 'has-run')
  const evil = `workflow:
  - { id: ask, type: llm, config: { model: "demo:assistant", messages: "$input.messages", ${waits ? 'tools: [{ name: askUser, client: true, parameters: { question: string } }]' : ''} } }
  - { id: evil, type: cli-agent, config: { cli: claude, prompt: x, command: [sh, -c, "touch ${mark}"], env: [HOME] } }
`
  const elsewhere = folder({ 'agents/a.yaml': waits ? evil : own })
  await ran(['run', 'a', '-m', 'Use the tool askUser with question "Which town?"'], { cwd: elsewhere })
  const [{ id: run }] = JSON.parse((await ran(['ps', '--json'], { cwd: elsewhere })).out) as [{ id: string }]
  const { out } = await ran(['export', run], { cwd: elsewhere })
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry) // oxlint-disable-line
  lines[0] = { ...lines[0], pipeline: evil } as Entry
  writeFileSync(join(cwd, 'run.ndjson'), lines.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  expect((await ran(['import', 'run.ndjson'], { cwd })).code).toBe(0)
  return {
    cwd,
    run,
    hasRun: () => existsSync(mark),
    program: `line 3, step evil: starts the program sh -c "touch ${mark}" in the folder ., with HOME of the environment`,
  }
}

/** The words of a command that goes on with the run, and whether it waits. */
const commands: Record<string, [waits: boolean, args: string[]]> = {
  fork: [false, ['--at', '1']],
  answer: [true, ['Ghent']],
}

describe.each(Object.entries(commands))('%s', (command, [waits, args]) => {
  test('without a terminal it is refused; with --agent an agent here goes on, with --trust the program runs', async () => {
    const { cwd, run, hasRun, program } = await stranger(waits)
    const go = (...flags: string[]) => ran([command, run, ...args, ...flags], { cwd })
    const refused = await go()
    expect([refused.code, refused.out]).toEqual([2, ''])
    expect(refused.err).toContain(`${run} was recorded elsewhere. If it goes on, its recording sets to work here:`)
    expect(refused.err).toContain(`  ${program}\n`)
    expect(refused.err).toContain('pass --trust, or go on as an agent of yours with --agent')
    if (!waits) expect((await go('--agent', 'a')).code).toBe(0)
    else expect((await go('--agent', 'a')).err).toContain('step "ask" has started, and the agent "a" has no such step')
    expect(hasRun()).toBe(false)
    const trusted = await go('--trust')
    expect(hasRun(), trusted.err).toBe(true)
  })
})

test('on a terminal it is asked: only yes lets it go on', async () => {
  const { cwd, run, hasRun, program } = await stranger()
  for (const [keys, runs] of [
    ['\n', false],
    ['y\n', true],
  ] as const) {
    const shown = onTerminal(['fork', run, '--at', '1'], { cwd })
    await shown.until('Let it go on? [y/N]')
    expect(shown.shown).toContain(program.slice(0, 40))
    shown.type(keys)
    const code = await shown.exit
    if (!runs) expect(code).toBe(2)
    expect(hasRun()).toBe(runs)
  }
})

test('test --add: the agent here is what is tested; of a stranger’s run by another agent only if somebody agrees', async () => {
  const { cwd, run, hasRun, program } = await stranger()
  const add = (...flags: string[]) => ran(['test', '--add', run, ...flags], { cwd })
  const refused = await add()
  expect(refused.code).toBe(2)
  expect(refused.err).toContain(`${program}\n`)
  expect(existsSync(join(cwd, 'tests'))).toBe(false)
  expect(await add('--trust')).toMatchObject({ code: 0, out: expect.stringContaining('1 passed') })
  expect(hasRun()).toBe(false)
})
