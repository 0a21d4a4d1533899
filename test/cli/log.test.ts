/** `ps`, `logs`, `stop`: through the live server, and on a database whose server is down. */
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunRow } from '../../src/part/log.ts'
import { folder, killed, millrace, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const yaml = `workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true } }
`
const post = (url: string, body: unknown) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

/** A server on a folder of its own, its model in the test's hands, and a way to start runs. */
async function setUp() {
  const gates: PromiseWithResolvers<void>[] = []
  const upstream = await startUpstream(async (reply) => {
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    reply.say('one ')
    await gate.promise
    reply.say('two')
    reply.finish()
  })
  onTestFinished(() => upstream.close())
  const cwd = folder({ 'agents/a.yaml': yaml })
  const server = await serving(['--endpoint', `up=${upstream.baseURL}`], { cwd })
  return {
    cwd,
    server,
    gates,
    async start(content = 'Hi there') {
      const input = { messages: [{ role: 'user', content }] }
      const { id } = (await (await post(`${server.url}/api/runs`, { agentId: 'a', input })).json()) as { id: string }
      const count = gates.length
      await expect.poll(() => gates.length).toBeGreaterThan(count - 1)
      await expect.poll(async () => (await entries(server.url, id)).at(-1)?.type).toBe('text-delta')
      return id
    },
  }
}

async function entries(url: string, run: string): Promise<Entry[]> {
  return toEntries(await (await fetch(`${url}/api/runs/${run}/events`)).text())
}

function toEntries(ndjson: string): Entry[] {
  return ndjson.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Entry]))
}

describe('log output of the CLI', () => {
  test('on a live server: runs listed, a log followed to its end, a run stopped', { timeout: 60_000 }, async () => {
    const { cwd, server, gates, start } = await setUp()
    const first = await start('The first\n one')
    const table = await ran(['ps'], { cwd })
    expect(table.code).toBe(0)
    expect(table.out).toMatch(/^RUN +AGENT +STATUS +STARTED +TOOK +TOKENS +TITLE\n/)
    expect(table.out).toMatch(new RegExp(`^${first} +a +running .* The first one$`, 'mu'))

    const follow = millrace(['logs', first, '--follow', '--json'], { cwd })
    await follow.until('"one "')
    const typed = millrace(['logs', first, '-f', '--type', 'text-delta', 'run-end', '--json'], { cwd })
    await typed.until('"one "')
    // Without --follow: what there is.
    const now = await ran(['logs', first, '--json', '--since', '3'], { cwd })
    expect(toEntries(now.out)).toEqual((await entries(server.url, first)).slice(3))
    gates[0]!.resolve()
    expect([await follow.exit, await typed.exit]).toEqual([0, 0])
    const all = await entries(server.url, first)
    expect(toEntries(follow.out)).toEqual(all)
    expect(toEntries(typed.out)).toEqual(all.filter(({ type }) => type === 'text-delta' || type === 'run-end'))
    // Wherever the run stands: `--type` takes types and nothing else.
    for (const words of [
      ['--type', 'run-start,run-end', first],
      ['--type', 'run-start', first, '--type', 'run-end'],
      ['--type=run-start', 'run-end', first],
      [first, '--type', 'run-start', 'run-end'],
    ]) {
      const some = await ran(['logs', ...words, '--json'], { cwd })
      expect({ words, some: toEntries(some.out) }).toEqual({ words, some: [all[0], all.at(-1)] })
    }
    const lines = (await ran(['logs', first], { cwd })).out.trimEnd().split('\n')
    const raw = (await ran(['logs', first, '--raw'], { cwd })).out.trimEnd().split('\n')
    expect(raw).toHaveLength(all.length)
    // The two deltas are one line, with the number of the last.
    const seq = all.findLast(({ type }) => type === 'text-delta')!.seq
    expect(lines).toHaveLength(all.length - 1)
    expect(lines.filter((line) => line.includes(' text-delta '))).toEqual([
      expect.stringMatching(new RegExp(`^ +${seq} .*"one two"`, 'u')),
    ])
    expect(lines[0]).toMatch(/^ {4}1 {2}\d\d:\d\d:\d\d\.\d{3} {2}run-start /)

    const second = await start()
    const stopped = await ran(['stop', second], { cwd })
    expect([stopped.code, stopped.err]).toEqual([0, `stopping ${second}\n`])
    await expect.poll(async () => (await entries(server.url, second)).at(-1)).toMatchObject({ outcome: 'aborted' })
    const again = await ran(['stop', second], { cwd })
    expect([again.code, again.err]).toEqual([0, `${second} has already ended (aborted)\n`])

    const listed = async (...flags: string[]) =>
      (JSON.parse((await ran(['ps', '--json', ...flags], { cwd })).out) as RunRow[]).map(({ id }) => id)
    expect(await listed()).toEqual([second, first])
    expect(await listed('--status', 'aborted')).toEqual([second])
    expect(await listed('--limit', '1')).toEqual([second])
    expect(await listed('--agent', 'b')).toEqual([])
    for (const run of [first, second, 'all']) expect((await ran(['verify', run], { cwd })).code).toBe(0)
  })

  test('a database whose server was killed is read as it stands and left as it was', async () => {
    const { cwd: living, server, gates, start } = await setUp()
    const done = await start()
    gates[0]!.resolve()
    await expect.poll(async () => (await entries(server.url, done)).at(-1)?.type).toBe('run-end')
    const cut = await start()
    const before = await entries(server.url, cut)
    const cwd = killed(living)
    const data = join(cwd, '.millrace')
    const state = () =>
      ['millrace.db', 'millrace.db-wal'].map((name) =>
        createHash('sha256')
          .update(readFileSync(join(data, name)))
          .digest('hex'),
      )
    const untouched = state()
    const ps = await ran(['ps', '--json'], { cwd })
    expect((JSON.parse(ps.out) as RunRow[]).map(({ id, status, epoch }) => [id, status, epoch])).toEqual([
      [cut, 'running', 1],
      [done, 'completed', 1],
    ])
    for (const flags of [[], ['--follow']]) {
      const { code, out } = await ran(['logs', cut, '--json', ...flags], { cwd })
      expect([code, toEntries(out)]).toEqual([0, before])
    }
    expect((await ran(['verify', 'all'], { cwd })).code).toBe(0)
    const stop = await ran(['stop', cut], { cwd })
    expect([stop.code, stop.err]).toEqual([2, expect.stringContaining('no server is running on .millrace')])
    expect(state()).toEqual(untouched)
    expect(readdirSync(data).filter((name) => !/^millrace\.db|^server\.(?:json|lock)$/u.test(name))).toEqual([])

    // The next server finds the run as the killed one left it.
    const next = await serving([], { cwd })
    expect(next.err).toContain('0 runs resumed, 1 marked as interrupted')
    expect(await entries(next.url, cut)).toEqual([...before, ...(await entries(next.url, cut)).slice(before.length)])
    expect((await entries(next.url, cut)).at(-1)).toMatchObject({ type: 'run-end', outcome: 'interrupted' })
  })

  test('without a log there is one clear line', async () => {
    const cwd = folder({ 'agents/a.yaml': yaml.replace('up:m', 'demo:assistant') })
    for (const args of [['ps'], ['logs', 'x'], ['stop', 'x'], ['verify', 'x']]) {
      const { code, out, err } = await ran(args, { cwd })
      expect([code, out]).toEqual([2, ''])
      expect(err).toMatch(/^millrace: No runs found in \.millrace\. .*--data/)
    }
    for (const args of [
      ['ps', '--status', 'odd'],
      ['ps', '--limit', 'x'],
      ['logs', 'x', '--since', '-1'],
    ]) {
      expect((await ran(args, { cwd })).code).toBe(2)
    }
  })
})
