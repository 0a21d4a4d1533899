/** What an older build has left is whole with the build of today: the list that every folder and every Redis of `data` passes. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import type { RunView } from '../../src/fold/run-view.ts'
import type { RunRow, Store } from '../../src/part/log.ts'
import type { Stats } from '../../src/record/stats.ts'
import { listThreads } from '../../src/record/threads/list-threads.ts'
import { openArchive } from '../../src/store/archive/archive.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { folder, ran } from '../support/cli.ts'
import { readKeys } from './redis-keys.ts'

export const data = resolve(import.meta.dirname, 'data')

interface Old {
  cwd: string
  /** A command that must succeed; what it says. */
  done(...args: string[]): Promise<string>
}

export interface Kind {
  place: 'folder' | 'redis'
  /** Puts what was kept into a folder of the test, after its agents. */
  put(cwd: string, from: string): void | Promise<void>
  /** What an upgrade does by hand. */
  upgrade?: readonly string[]
  open(cwd: string): Store | Promise<Store>
}

export const inFolder: Kind = {
  place: 'folder',
  put(cwd, from) {
    mkdirSync(join(cwd, '.millrace'))
    writeFileSync(join(cwd, '.millrace/millrace.db'), gunzipSync(readFileSync(join(from, 'millrace.db.gz'))))
  },
  upgrade: ['migrate', '--backup'],
  open: (cwd) => sqliteStore(join(cwd, '.millrace/millrace.db')),
}

/** One of its runs is in an archive. */
export const inRedis = (url: string): Kind => ({
  place: 'redis',
  async put(cwd, from) {
    execFileSync('tar', ['xzf', join(from, 'archive.tar.gz'), '-C', cwd])
    const record = `{ store: '${url}', archive: './archive' }`
    writeFileSync(join(cwd, 'agents/millrace.config.mjs'), `export default { record: ${record} }\n`)
    await readKeys(url, gunzipSync(readFileSync(join(from, 'redis.gz'))).toString())
  },
  open: (cwd) => redisStore(url, { archive: openArchive(join(cwd, 'archive')) }),
})

export function passesTheList(name: string, kind: () => Kind, place: Kind['place']): void {
  const from = join(data, name)
  const text = (file: string) => readFileSync(join(from, place, file), 'utf8')
  const ids = JSON.parse(text('ids.json')) as Record<'told' | 'more' | 'failed' | 'waits' | 'thread', string> & {
    forked?: string
  }

  async function open(): Promise<Old> {
    const { put, upgrade } = kind()
    const cwd = folder()
    cpSync(join(from, 'agents'), join(cwd, 'agents'), { recursive: true })
    await put(cwd, from)
    const env = { MILLRACE_ARCHIVE: join(cwd, 'archive') }
    const done: Old['done'] = async (...args) => {
      const { code, out, err } = await ran(args, { cwd, env })
      expect.soft([args, code, err]).toEqual([args, 0, expect.any(String)])
      return out
    }
    if (upgrade !== undefined) await done(...upgrade)
    return { cwd, done }
  }

  describe(`${place} of ${name} November`, () => {
    test('exports are the same, byte for byte; so are the logs after an import elsewhere', async () => {
      const { done } = await open()
      const elsewhere = folder({ 'agents/assistant.yaml': '' })
      cpSync(join(from, 'agents'), join(elsewhere, 'agents'), { recursive: true })
      await done('verify', 'all')
      for (const what of ['told', 'more', 'failed', 'waits', 'forked'] as const) {
        const run = ids[what]
        if (run === undefined) continue
        const kept = text(`${what}.ndjson`)
        // When a fork was made is said now.
        expect((await done('export', run)).replace(/(?<="forkedFrom":\{[^}]*),"at":\d+/u, '')).toBe(kept)
        if (what === 'waits' || what === 'forked') continue
        expect(await ran(['import', join(from, place, `${what}.ndjson`)], { cwd: elsewhere })).toMatchObject({
          code: 0,
        })
        expect((await ran(['export', run], { cwd: elsewhere })).out).toBe(kept)
      }
    })

    test('an approval that was asked for then is answered now, and the run ends', async () => {
      const { done } = await open()
      expect(await done('answer', ids.waits, 'approve')).toContain('84')
      expect(await done('ps', '--status', 'completed')).toContain(ids.waits)
      // What was stored then is as it was.
      expect((await done('export', ids.waits)).startsWith(text('waits.ndjson'))).toBe(true)
    })

    test('it is found by its words, counted, forked, and its conversation goes on', async () => {
      const { done } = await open()
      expect(await done('ps', '--search', 'whales')).toContain(ids.told)
      if (place === 'folder')
        expect(await done('query', 'SELECT count(*) AS n FROM tool_calls', '--json')).toContain('"n"')
      expect(await done('threads')).toContain(ids.thread)
      await done('fork', ids.told, '--at', '2', '-m', 'And 7*7?')
      await done('run', 'assistant', '-m', 'And 3*3?', '--thread', ids.thread)
      const shown = await done('threads', ids.thread, '--full')
      for (const said of ['blue whales', 'And in words?', 'And 3*3?']) expect(shown).toContain(said)
      await done('verify', 'all')
    })

    test('its runs belong to no one, and a user sees none of them', async () => {
      const { cwd } = await open()
      const store = await kind().open(cwd)
      const [all, ofNoOne, ofNoTenant] = [{}, { owner: '' }, { tenant: '' }].map((query) => store.runs.list(query))
      expect((await all)!.length).toBeGreaterThan(3)
      expect([await ofNoOne, await ofNoTenant]).toEqual([await all, await all])
      expect((await all)!.filter((row) => 'owner' in row || 'tenant' in row)).toEqual([])
      const ann = { owner: 'ann', tenant: '' }
      expect([await store.runs.list(ann), await listThreads(store, ann)]).toEqual([[], []])
      expect((await listThreads(store, { owner: '' })).length).toBeGreaterThan(0)
      await store.close()
    })

    test('figures are those of the log, also of a fork, or absent', async () => {
      const { done } = await open()
      const rows = JSON.parse(await done('ps', '--json')) as RunRow[]
      for (const what of ['told', 'more', 'failed', 'waits', 'forked'] as const) {
        if (ids[what] === undefined) continue
        const view = JSON.parse(await done('show', ids[what], '--json')) as RunView
        const row = rows.find(({ id }) => id === ids[what])!
        const { startedAt, endedAt, firstTokenMs } = figuresOf(text(`${what}.ndjson`))
        expect.soft([what, row.startedAt, row.endedAt]).toEqual([what, startedAt, endedAt])
        expect.soft([what, view.startedAt, view.endedAt]).toEqual([what, startedAt, endedAt])
        expect.soft([undefined, firstTokenMs], what).toContain(row.firstTokenMs)
      }
      const stats = async (since: number) =>
        JSON.parse(await done('stats', '--json', '--since', String(since))) as Stats
      const durations = rows.flatMap(({ startedAt, endedAt }) => (endedAt === undefined ? [] : endedAt - startedAt))
      expect((await stats(1e12)).duration?.p99).toBe(Math.max(...durations))
      if (ids.forked === undefined) return
      // It and the one that waits; not its source.
      const { outcomes } = await stats(figuresOf(text('forked.ndjson')).startedAt)
      expect(outcomes.map(({ name, count }) => `${count} ${name}`).toSorted()).toEqual(['1 completed', '1 suspended'])
    })
  })
}

/** Counted by hand: nobody has waited for an answer, and a fork shares the first entry. */
function figuresOf(log: string) {
  const entries = log
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
  const start = entries[0]!
  const shared = start.type === 'run-start' ? (start.forkedFrom?.seq ?? 0) : 0
  const startedAt = entries.find(({ seq }) => seq > shared)!.timestamp
  const first = entries.find(({ seq, type }) => seq > shared && (type === 'text-delta' || type === 'reasoning-delta'))
  const end = entries.find(({ type }) => type === 'run-end')
  return { startedAt, endedAt: end?.timestamp, firstTokenMs: first && first.timestamp - startedAt }
}
