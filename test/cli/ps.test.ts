/** `ps` and what names a run: runs whose process is gone, lists with more behind them, the beginnings of ids. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { folder, killed, millrace, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const step = 'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]\n'
const demo = step.replace('up:m', 'demo:assistant')

/** A model that says one word and waits for the gate. */
async function heldModel() {
  const gate = Promise.withResolvers<void>()
  const upstream = await startUpstream(async (reply) => {
    reply.say('Half')
    await gate.promise
    reply.finish()
  })
  onTestFinished(() => upstream.close())
  return { gate, flags: ['--endpoint', `up=${upstream.baseURL}`] }
}

function toEntries(ndjson: string): Entry[] {
  return ndjson.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Entry]))
}

async function start(url: string, agentId: string): Promise<string> {
  const body = JSON.stringify({ agentId, input: { messages: [{ role: 'user', content: `Hi ${agentId}` }] } })
  const headers = { 'content-type': 'application/json' }
  const { id } = (await (await fetch(`${url}/api/runs`, { method: 'POST', headers, body })).json()) as { id: string }
  const events = () => fetch(`${url}/api/runs/${id}/events`).then((response) => response.text())
  await expect.poll(events).toContain('"Half"')
  return id
}

describe('millrace ps', () => {
  test('runs whose server is gone are marked, and it is said what the next one does with them', async () => {
    const { flags } = await heldModel()
    const living = folder({ 'agents/a.yaml': step, 'agents/b.yaml': `recover: true\n${step}` })
    const server = await serving(flags, { cwd: living })
    const ended = await start(server.url, 'a')
    const goesOn = await start(server.url, 'b')
    const live = await ran(['ps'], { cwd: living })
    expect([live.code, live.err]).toEqual([0, ''])
    expect(live.out.match(/ running /gu)).toHaveLength(2)
    expect(live.out).not.toContain('(no server)')
    expect((await ran(['verify', 'all'], { cwd: living })).err).toMatch(
      /not ended \(running\)\n[^]*\n2 checked, 0 errors, 2 not ended\n$/,
    )

    const cwd = killed(living)
    const { code, out, err } = await ran(['ps'], { cwd })
    expect(code).toBe(0)
    expect(out.split('\n').slice(1, 3)).toEqual([
      expect.stringMatching(new RegExp(`^${goesOn} +b +running \\(no server\\) `, 'u')),
      expect.stringMatching(new RegExp(`^${ended} +a +running \\(no server\\) `, 'u')),
    ])
    const outlook = 'the next millrace serve will resume 1 (recover: true) and mark 1 as interrupted'
    expect(err).toBe(`no server is running on .millrace: 2 runs have not ended; ${outlook}\n`)
    const json = JSON.parse((await ran(['ps', '--json', '--agent', 'a'], { cwd })).out) as object[]
    expect(json).toMatchObject([{ id: ended, status: 'running', orphaned: true }])
    expect((await ran(['show', ended], { cwd })).out).toMatch(/^run_\w+ {2}a {2}running \(no server\)\n/)
    expect(JSON.parse((await ran(['show', ended, '--json'], { cwd })).out)).toMatchObject({ orphaned: true })
    const follow = await ran(['logs', ended, '--follow'], { cwd })
    expect([follow.code, follow.err]).toEqual([
      0,
      `${ended} has not ended, but no process is running it: this is the log so far\n`,
    ])
    const verified = await ran(['verify', 'all'], { cwd })
    expect([verified.code, verified.out]).toEqual([0, ''])
    expect(verified.err).toMatch(
      /^run_\w+: \d+ entries, not ended \(no server\)\n[^]*\n2 checked, 0 errors, 2 not ended\n$/,
    )

    // It was told truly.
    const next = await serving(flags, { cwd })
    expect(next.err).toContain('recovered after a restart: 1 run resumed, 1 marked as interrupted')
    const after = await ran(['ps'], { cwd })
    expect([after.out.includes('(no server)'), after.err]).toEqual([false, ''])
  })

  test('what another command runs is alive: it can be followed to its end, and is stopped where it runs', async () => {
    const { gate, flags } = await heldModel()
    const cwd = folder({ 'agents/a.yaml': step })
    const run = millrace(['run', 'a', '-m', 'Hi', ...flags], { cwd })
    await run.until('Half')
    const { out, err } = await ran(['ps', '--json'], { cwd })
    const [row] = JSON.parse(out) as [RunRow]
    expect([row.status, 'orphaned' in row, err]).toEqual(['running', false, ''])
    const stop = await ran(['stop', row.id], { cwd })
    expect([stop.code, stop.err]).toEqual([
      2,
      expect.stringContaining('Another millrace command runs it: press Ctrl-C there.'),
    ])
    const follow = millrace(['logs', row.id, '--follow', '--json'], { cwd })
    await follow.until('"Half"')
    gate.resolve()
    expect([await run.exit, await follow.exit, follow.err]).toEqual([0, 0, ''])
    const seqs = toEntries(follow.out).map(({ seq }) => seq)
    expect(seqs).toEqual(seqs.map((_, i) => i + 1))
    expect(follow.out).toMatch(/"type":"run-end"[^\n]*\n$/)
    const ended = await ran(['stop', row.id], { cwd })
    expect([ended.code, ended.err]).toEqual([0, `${row.id} has already ended (completed)\n`])
  })

  /** Three runs that have ended, newest first; then the same through a server. */
  async function threeRuns(check: (cwd: string, ids: [string, ...string[]]) => Promise<void>) {
    const cwd = folder({ 'agents/a.yaml': demo })
    for (const word of ['one', 'two', 'three']) await ran(['run', 'a', '-m', word], { cwd })
    const rows = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as RunRow[]
    const ids = rows.map(({ id }) => id) as [string, ...string[]]
    expect(ids).toHaveLength(3)
    await check(cwd, ids)
    await serving([], { cwd })
    await check(cwd, ids)
  }

  test('a list with more behind it says so', () =>
    threeRuns(async (cwd) => {
      const ps = (...args: string[]) => ran(['ps', ...args], { cwd })
      expect(await ps('--limit', '2')).toMatchObject({ code: 0, err: '(more runs: use --limit 10)\n' })
      const json = await ps('--limit', '1', '--json')
      expect([(JSON.parse(json.out) as unknown[]).length, json.err]).toEqual([1, '(more runs: use --limit 5)\n'])
      expect((await ps('--limit', '3')).err).toBe('')
      expect((await ps('--limit', '2', '--status', 'failed')).err).toBe('no matching runs\n')
    }))

  test('a list of a model, of a protocol, and sorted', () =>
    threeRuns(async (cwd, ids) => {
      const listed = async (...args: string[]) => {
        const { out } = await ran(['ps', '--json', ...args], { cwd })
        return (JSON.parse(out) as RunRow[]).map(({ id }) => id)
      }
      expect(await listed('--model', 'demo:assistant', '--protocol', 'cli')).toEqual(ids)
      expect(await listed('--model', 'demo:assistant', '--protocol', 'ui')).toEqual([])
      expect((await ran(['ps', '--model', 'other'], { cwd })).err).toBe('no matching runs\n')
      expect((await listed('--sort', 'duration', '--limit', '2')).length).toBe(2)
      expect((await listed('--sort', 'tokens')).toSorted()).toEqual(ids.toSorted())
    }))

  test('runs are named by as much of their ids as tells them apart', () =>
    threeRuns(async (cwd, [id, ...others]) => {
      const length = Math.max(...others.map((other) => [...other].findIndex((char, i) => char !== id[i]))) + 1
      const short = id.slice(0, length)
      const page = await ran(['show', id], { cwd })
      for (const beginning of [short, short.slice('run_'.length)]) {
        expect(await ran(['show', beginning], { cwd })).toEqual(page)
      }
      expect(toEntries((await ran(['logs', short, '--json'], { cwd })).out)[0]).toMatchObject({ runId: id })
      expect((await ran(['stop', short], { cwd })).err).toBe(`${id} has already ended (completed)\n`)
      expect((await ran(['verify', short], { cwd })).err).toContain(`${id}: `)
    }))

  test('a run that is none, or may be several, is exit 2 with those it may be', () =>
    threeRuns(async (cwd, ids) => {
      const [id] = ids
      const typo = id.slice(0, -2) + (id.endsWith('00') ? '11' : '00')
      const long = `${id.slice(0, 16)}x`
      for (const [args, message] of [
        [['show', 'run'], `"run" matches several runs; pass a longer prefix: ${ids.join(', ')}`],
        [['show', 'run_none'], 'There is no run run_none. List runs with: millrace ps'],
        [['logs', typo], `There is no run ${typo} (did you mean ${id}?). List runs with: millrace ps`],
        [['stop', long], `There is no run ${long} (did you mean ${id}?). List runs with: millrace ps`],
        [['stop', ''], 'Which run? Pass its id, or a unique prefix of it.'],
        [['verify', 'run_'], 'Which run? Pass its id, or a unique prefix of it.'],
      ] as const) {
        expect(await ran([...args], { cwd })).toEqual({ code: 2, out: '', err: `millrace: ${message}\n` })
      }
    }))

  test('logs: an unknown type is exit 2 with what was meant, before any run is looked for', async () => {
    const cwd = folder()
    const told = async (...args: string[]) => {
      const { code, out, err } = await ran(['logs', 'x', ...args], { cwd })
      expect([code, out]).toEqual([2, ''])
      return err
    }
    expect(await told('--type', 'text-dleta')).toMatch(
      /'text-dleta' is invalid\. Did you mean text-delta\? Known: .*run-end/,
    )
    expect(await told('--type', 'run-end', 'text')).toContain('Did you mean text-start, text-delta, text-end?')
    expect(await told('--type', 'run-end,xyz')).toMatch(/'run-end,xyz' is invalid\. Known: /)
    expect(await told('another')).toContain('Unexpected argument "another". Pass one run.')
    // Known ones get as far as the log, which is not there.
    expect(await told('--type', 'run-end,text-delta', 'usage')).toContain('No runs found in .millrace')
  })
})
