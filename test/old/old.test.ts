/** A data folder of a build of 25 November 2026 (`make.sh` makes it anew): with the build of today nothing of it is lost. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { folder, ran } from '../support/cli.ts'

const data = resolve(import.meta.dirname, 'data')
const read = (name: string) => readFileSync(join(data, name), 'utf8')
const ids = JSON.parse(read('ids.json')) as Record<'told' | 'more' | 'waits' | 'thread', string>

function oldFolder(): string {
  const cwd = folder({
    'agents/assistant.yaml': read('assistant.yaml'),
    'agents/approve-first.yaml': read('approve-first.yaml'),
    '.millrace/x': '',
  })
  writeFileSync(join(cwd, '.millrace', 'millrace.db'), gunzipSync(readFileSync(join(data, 'millrace.db.gz'))))
  return cwd
}

async function done(cwd: string, ...args: string[]): Promise<string> {
  const { code, out, err } = await ran(args, { cwd })
  expect.soft([args, code, err]).toEqual([args, 0, expect.any(String)])
  return out
}

test('exports are the same, byte for byte; so are the logs after an import elsewhere', async () => {
  const cwd = oldFolder()
  await done(cwd, 'migrate', '--backup')
  await done(cwd, 'verify', 'all')
  const elsewhere = folder({ 'agents/assistant.yaml': read('assistant.yaml') })
  for (const run of [ids.told, ids.more, ids.waits]) {
    expect(await done(cwd, 'export', run)).toBe(read(`${run}.ndjson`))
    if (run === ids.waits) continue
    await done(elsewhere, 'import', join(data, `${run}.ndjson`))
    expect(await done(elsewhere, 'export', run)).toBe(read(`${run}.ndjson`))
  }
})

test('an approval that was asked for then is answered now, and the run ends', async () => {
  const cwd = oldFolder()
  await done(cwd, 'migrate')
  expect(await done(cwd, 'answer', ids.waits, 'approve')).toContain('84')
  expect(await done(cwd, 'ps', '--status', 'completed')).toContain(ids.waits)
  // What was stored then is as it was.
  expect((await done(cwd, 'export', ids.waits)).startsWith(read(`${ids.waits}.ndjson`))).toBe(true)
})

test('it is found by its words, counted, forked, and its conversation goes on', async () => {
  const cwd = oldFolder()
  await done(cwd, 'migrate')
  expect(await done(cwd, 'ps', '--search', 'whales')).toContain(ids.told)
  expect(await done(cwd, 'query', 'SELECT count(*) AS n FROM tool_calls', '--json')).toContain('"n"')
  expect(await done(cwd, 'threads')).toContain(ids.thread)
  await done(cwd, 'fork', ids.told, '--at', '2', '-m', 'And 7*7?')
  await done(cwd, 'run', 'assistant', '-m', 'And 3*3?', '--thread', ids.thread)
  const shown = await done(cwd, 'threads', ids.thread, '--full')
  for (const said of ['blue whales', 'And in words?', 'And 3*3?']) expect(shown).toContain(said)
  await done(cwd, 'verify', 'all')
})
