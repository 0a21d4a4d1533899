/** JSON text from outside is parsed by `parseJson` of `src/part/json.ts`, which bounds its depth. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Where JSON is parsed otherwise: file → how often, and why that does no harm. */
const allowed: Record<string, [times: number, why: string]> = {
  'part/json.ts': [1, 'parseJson itself'],
  'server/body.ts': [1, 'its bound is a little higher, for what stands around the values'],
  'record/encode.ts': [2, 'what the store wrote, bounded right after'],
  'record/ndjson.ts': [1, 'a line of a log, bounded right after'],
  'record/sqlite-runs.ts': [2, 'columns that the store wrote: counts and an error'],
  'server/log-files.ts': [1, 'a line of our own of which one number is read'],
  'server/server-file.ts': [1, 'a file of our own, read field by field'],
  'cli/commands/init.ts': [1, "the user's package.json, of which one field is read"],
  'cli/remote-access.ts': [3, "a Millrace server's own answers, bounded there"],
  'client/client-run.ts': [1, "a Millrace server's own answers, bounded there"],
  'client/client.ts': [2, "a Millrace server's own answers, bounded there"],
  'client/request.ts': [1, "a Millrace server's own answers, bounded there"],
  'client/follow.ts': [1, "a Millrace server's own answers, bounded there"],
}

test('no other file parses JSON without the bound', () => {
  const root = new URL('../src', import.meta.url).pathname
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !/\.(?:test|contract)\.ts$|(?:^|\/)testing\//u.test(name),
  )
  expect(files.length).toBeGreaterThan(100)
  const found: Record<string, number> = {}
  for (const name of files) {
    const source = readFileSync(join(root, name), 'utf8').replaceAll(/\/\*[^]*?\*\/|\/\/.*/gu, '')
    const times = source.match(/\bJSON\.parse\b|\.json\(\)/gu)?.length ?? 0
    if (times > 0) found[name.replaceAll('\\', '/')] = times
  }
  expect(found).toEqual(Object.fromEntries(Object.entries(allowed).map(([name, [times]]) => [name, times])))
})
