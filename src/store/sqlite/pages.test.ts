import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import type { ReadOptions } from '../../part/log.ts'
import { collect, live } from '../contract/tools.contract.ts'
import { cutAt, endEntry, entry, startEntry } from '../example-run.contract.ts'
import { sqliteStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-pages-'))
describe('database pages', () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('entries of some types are found in any row, also of a fork, and among entries written meanwhile', async () => {
    const store = sqliteStore(join(folder, 'millrace.db'))
    const said = (seq: number) => entry(seq, { type: 'text-delta', id: 'a', delta: `"type":"data" ${seq}` })
    const entries: Entry[] = [startEntry('r')]
    for (let seq = 2; seq <= 3000; seq++)
      entries.push(seq % 700 === 0 ? entry(seq, { type: 'data', name: 'd', data: seq }) : said(seq))
    const cuts = Array.from({ length: 60 }, (_, i) => i * 50)
    for (const batch of cutAt(entries, cuts)) await store.log.append('r', 1, batch)
    // Ends within a row that has no other entries.
    await store.log.fork('r', 1425, 'f')
    await store.log.append('f', 1, [said(1426), endEntry(1427)])
    const read = async (run: string, options: ReadOptions) =>
      (await collect(store.log.read(run, options))).map(({ seq }) => seq)
    expect(await read('r', { types: ['data'] })).toEqual([700, 1400, 2100, 2800])
    expect(await read('r', { types: ['data'], after: 700, before: 2800, limit: 1 })).toEqual([1400])
    expect(await read('r', { types: ['run-end'] })).toEqual([])
    expect(await read('f', { types: ['data', 'run-end'] })).toEqual([700, 1400, 1427])
    const later = collect(store.log.read('r', { types: ['data', 'run-end'], after: 2800, signal: live() }))
    await store.log.append('r', 1, [said(3001), entry(3002, { type: 'data', name: 'd', data: 1 }), endEntry(3003)])
    expect((await later).map(({ seq }) => seq)).toEqual([3002, 3003])
    await store.close()
  })
})
