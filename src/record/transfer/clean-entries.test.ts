import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { createRedactor } from '../../fold/redact.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { exportRun } from './export.ts'
import { importNdjson } from './import.ts'

const secret = 'canary-7f3a9c'
const folder = new URL('../../wire/golden/', import.meta.url)
const read = (name: string) => readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
const parse = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)
const write = (entries: readonly Entry[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')

async function imported(source: string, secrets = [secret]) {
  const store = memoryStore()
  const redactor = () => createRedactor(secrets)
  const { id } = await importNdjson(store, source, { redactor })
  expect((await importNdjson(store, source, { redactor })).isNew).toBe(false)
  const lines: string[] = []
  for await (const piece of exportRun(store, id)) lines.push(piece)
  const kept = JSON.stringify([await store.runs.view(id), await store.runs.get(id)])
  await store.close()
  return { text: lines.join(''), kept }
}

const textOf = (entries: readonly Entry[]) =>
  entries.map((entry) => (entry.type === 'text-delta' ? entry.delta : '')).join('')

describe('cleaning of imported entries', () => {
  test.each([1, 2, 3, 5, 8, 13, 40])(
    'a secret that deltas of %i characters cut is found; each entry keeps its place',
    async (size) => {
      const entries = parse(read('plain-text'))
      const at = entries.findIndex(({ type }) => type === 'text-delta')
      const end = entries.findIndex(({ type }) => type === 'text-end')
      const said = `It is ${secret}, once more ${secret}, and cana`
      const deltas = said.match(new RegExp(`.{1,${size}}`, 'gu'))!.map((delta) => ({ ...entries[at]!, delta }) as Entry)
      const other = {
        ...entries[at]!,
        type: 'data',
        name: 'note',
        data: { [secret]: [`x${secret}`] },
      } as unknown as Entry
      const all = [...entries.slice(0, at), ...deltas, other, ...entries.slice(end)].map((entry, i) => ({
        ...entry,
        seq: i + 1,
      }))
      for (const cut of [all, all.slice(0, at + deltas.length)]) {
        const { text, kept } = await imported(write(cut))
        expect(text + kept).not.toContain(secret)
        const found = parse(text)
        // As in a live run, one character alone is never held back.
        expect(textOf(found).replaceAll('c[', '[')).toBe('It is [redacted], once more [redacted], and cana')
        expect(found.slice(0, cut.length).map(({ seq, type }) => [seq, type])).toEqual(
          cut.map(({ seq, type }) => [seq, type]),
        )
      }
    },
  )

  test.each(readdirSync(folder).flatMap((file) => /^(.+)\.ndjson$/u.exec(file)?.[1] ?? []))(
    '%s: without secrets it is stored byte for byte, also if text looks like the beginning of one',
    async (name) => {
      const source = read(name)
      expect((await imported(source)).text).toBe(source)
      const deltas = parse(source).flatMap((entry) =>
        entry.type === 'text-delta' && entry.delta.length > 1 ? entry.delta : [],
      )
      const alike = [...new Set(deltas)].map((delta) => `${delta}\u0007secret`)
      expect((await imported(source, alike)).text.length).toBe(source.length)
    },
  )
})
