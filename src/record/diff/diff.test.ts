import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { recordedEntries } from '../../part/recording.ts'
import { diffRuns } from './diff.ts'

const folder = new URL('../../wire/golden/', import.meta.url)
const names = readdirSync(folder).flatMap((file) => /^(.+)\.ndjson$/u.exec(file)?.[1] ?? [])
const entriesOf = (name: string) =>
  readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

const diff = (a: readonly Entry[], b: readonly Entry[]) => diffRuns(recordedEntries('a', a), recordedEntries('b', b))

/** The same run at another time, under other names. */
const again = (entries: readonly Entry[]) =>
  entries.map((entry, i) => {
    const text = JSON.stringify({ ...entry, timestamp: entry.timestamp + 1000 * i })
    const other = JSON.parse(
      text.replaceAll(/"(id|toolCallId|requestId|runId|threadId)":"([^"]+)"/gu, '"$1":"other-$2"'),
    ) as Entry
    if (other.type === 'suspend') other.requests = other.requests.map((id) => `other-${id}`)
    return other
  })

test.each(names)('%s: another run that said the same does not differ; what one says more is found', async (name) => {
  const entries = entriesOf(name)
  expect(await diff(entries, again(entries))).toMatchObject({ same: true, a: { id: 'a' }, b: { id: 'b' } })
  const shorter = await diff(entries, entries.slice(0, -1))
  expect(shorter).toMatchObject({ same: false, divergence: { a: { seq: entries.length }, fields: [] } })
  expect(shorter.divergence!.b).toBeUndefined()
})

test('the first entry that differs, with its fields, and what both came to', async () => {
  const entries = entriesOf('server-tool')
  const at = entries.findLastIndex(({ type }) => type === 'tool-result')
  const changed = entries.map((entry, i) => (i === at ? ({ ...entry, result: 'another' } as Entry) : entry))
  const found = await diff(entries, changed)
  expect(found.divergence).toEqual({ a: entries[at], b: changed[at], fields: ['result'] })
  expect(found.b.tools.map(({ output }) => output)).toContain('"another"')
  expect(found.a.tools.map(({ output }) => output)).not.toContain('"another"')
  expect(found.a.steps).toEqual(found.b.steps)
  expect(found.a).toMatchObject({ outcome: 'completed', entries: entries.length, text: expect.stringMatching(/./u) })
})
