/** `millrace replay`, `export`, and what is exported imported again: from the database and through a server. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { folder, ran, serving } from '../support/cli.ts'

const agents = {
  'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
}

const recorded = async (cwd: string) => {
  const { out } = await ran(['run', 'a', '-m', 'Hello', '--format', 'parts'], { cwd })
  return { log: out, run: (JSON.parse(out.slice(0, out.indexOf('\n'))) as { runId: string }).runId }
}

describe('millrace replay', () => {
  test('a run is played in every format, from and to a place, step by step', async () => {
    const cwd = folder(agents)
    const { log, run } = await recorded(cwd)
    const lines = log.split('\n')
    const play = (...flags: string[]) => ran(['replay', run, '--speed', 'max', ...flags], { cwd })
    const said = lines
      .flatMap((line) => (line.includes('"text-delta"') ? [JSON.parse(line).delta as string] : []))
      .join('')
    expect((await play()).out).toBe(said)
    expect((await play('--format', 'parts')).out).toBe(log)
    expect((await play('--format', 'ui')).out).toContain('data: [DONE]')
    expect((await play('--format', 'parts', '--from', '2', '--to', '3')).out).toBe(`${lines.slice(1, 3).join('\n')}\n`)
    const stepped = await ran(['replay', run, '--step', '--format', 'parts'], { cwd, input: '\n\n' })
    expect(stepped.out).toBe(`${lines.slice(0, 2).join('\n')}\n`)
    expect(stepped.err).toContain('1 run-start\n2 step-start main/a\n')
    for (const [flags, message] of [
      [['--speed', '0'], '--speed must be a number from 0.1 on, or max.'],
      [['--to', '9999'], '--to must be between 1 and'],
      [['--from', 'x'], '--from must be a whole number, not "x".'],
      [['--format', 'uy'], 'Did you mean ui?'],
    ] as const) {
      expect(await play(...flags)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) })
    }
  })

  test('what is exported is imported as it was, also through a server', async () => {
    const cwd = folder(agents)
    const { log, run } = await recorded(cwd)
    const { code, err } = await ran(['export', run, '-o', 'run.ndjson'], { cwd })
    expect([code, err]).toEqual([0, expect.stringMatching(/^run\.ndjson: a, \d+ entries, completed\n$/u)])
    expect(readFileSync(join(cwd, 'run.ndjson'), 'utf8')).toBe(log)
    expect(await ran(['export', run, '-o', 'no/such/run.ndjson'], { cwd })).toMatchObject({
      code: 1,
      err: expect.stringContaining('no/such/run.ndjson cannot be written'),
    })
    // Into a folder: without what is secret here.
    writeFileSync(join(cwd, 'canary.ndjson'), log.replaceAll('Hello', 'canary-7f3a9c').replaceAll(run, 'run_canary'))
    const secret = { cwd, env: { MY_API_KEY: 'canary-7f3a9c' } }
    expect((await ran(['import', 'canary.ndjson'], secret)).out).toBe('run_canary\n')
    const stored = (await ran(['export', 'run_canary'], { cwd })).out
    expect(stored).toContain('[redacted]')
    expect(stored).not.toContain('canary-7')
    const elsewhere = folder(agents)
    const server = await serving([], { cwd: elsewhere })
    expect((await ran(['import', join(cwd, 'run.ndjson')], { cwd: elsewhere })).out).toBe(`${run}\n`)
    expect((await ran(['import', join(cwd, 'run.ndjson'), '--url', server.url], { cwd })).err).toContain(
      'imported before',
    )
    expect((await ran(['export', run], { cwd: elsewhere })).out).toBe(log)
    expect((await ran(['replay', run, '--speed', 'max', '--format', 'parts'], { cwd: elsewhere })).out).toBe(log)
  })

  test('a fork runs on from a place, with another message or another agent; --list names the places', async () => {
    const cwd = folder({
      ...agents,
      'agents/b.yaml': 'workflow: [{ id: b, type: llm, config: { model: "demo:assistant", stream: true } }]',
    })
    const { run } = await recorded(cwd)
    const listed = await ran(['fork', run, '--list'], { cwd })
    expect(listed.out).toMatch(
      /^AT +BEHIND +KIND\n1 +\(start\)\n\d+ +main\/a\/1 +model-call\n\d+ +main\/a +tool-loop\n$/u,
    )
    const forked = await ran(['fork', run, '--at', '1', '-m', 'Bye', '--format', 'parts'], { cwd })
    expect([forked.code, forked.err]).toEqual([0, expect.stringMatching(/^run run_\w+\n/u)])
    expect(forked.out).toContain('"messages":[{"role":"user","content":"Bye"}]')
    const other = await ran(['fork', run, '--at', '1', '--agent', 'b', '--format', 'parts'], { cwd })
    expect([other.code, other.out]).toEqual([0, expect.stringContaining('main/b/1')])
    expect(await ran(['verify', 'all'], { cwd })).toMatchObject({ code: 0 })
    for (const [flags, message] of [
      [[], 'Where? Pass --at <seq>. See the places with: millrace fork'],
      [['--at', '4', '--agent', 'b'], 'the agent "b" has no such step. Fork at 1, before it'],
      [['--at', '1', '--detach'], '--detach needs a server'],
    ] as const) {
      const refused = await ran(['fork', run, ...flags], { cwd })
      expect([refused.code, refused.out, refused.err]).toEqual([2, '', expect.stringContaining(message)])
    }
  })

  test('diff: two runs that say the same are exit 0, whatever their ids; else it is shown where they part, exit 1', async () => {
    const cwd = folder(agents)
    const [one, two] = [await recorded(cwd), await recorded(cwd)]
    const same = await ran(['diff', one.run, two.run], { cwd })
    expect([same.code, same.out]).toEqual([0, expect.stringContaining('say the same')])
    const other = await ran(['run', 'a', '-m', 'Something else', '--format', 'parts'], { cwd })
    const { runId } = JSON.parse(other.out.slice(0, other.out.indexOf('\n'))) as { runId: string }
    const found = await ran(['diff', one.run, runId], { cwd })
    expect([found.code, found.out]).toEqual([1, expect.stringContaining('They part at entry 1: input differs.')])
    expect(found.out).toMatch(/\n {2}agent +a +a\n {2}outcome +completed +completed\n≠ text /u)
    const json = await ran(['diff', one.run, runId, '--json'], { cwd })
    expect(JSON.parse(json.out)).toMatchObject({ same: false, divergence: { fields: ['input'] }, a: { id: one.run } })
  })
})
