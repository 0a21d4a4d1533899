import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { fileNameOf } from '../part/file-name.ts'
import type { Upkeep } from '../part/upkeep.ts'
import { withRunFiles } from './run-files.ts'

/** Ids of which one begins another, and those that no file system would take. */
const ids = [
  'run_a',
  'run_a.b',
  'run_a.main',
  'run_a/main',
  'run_a%2Emain',
  '.a',
  'é'.repeat(256),
  `${'é'.repeat(255)}e`,
]

test.each(ids)('who deletes run %s leaves the files of all others', async (deleted) => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const endings = ['ndjson', 'summary.json', 'summary.json.tmp', `${fileNameOf('main/b.ndjson')}.raw`]
  for (const id of ids) for (const ending of endings) writeFileSync(join(dir, `${fileNameOf(id)}.${ending}`), '')
  expect(readdirSync(dir)).toHaveLength(ids.length * endings.length)
  const upkeep = withRunFiles({ drop: async () => true } as unknown as Upkeep, dir)
  await upkeep.drop(deleted)
  const left = ids.filter((id) => id !== deleted).flatMap((id) => endings.map((each) => `${fileNameOf(id)}.${each}`))
  expect(readdirSync(dir).toSorted()).toEqual(left.toSorted())
})
