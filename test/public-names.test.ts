/**
 * The names that others rely on: exports, routes, error codes, metrics, SQL tables and views, keys of Redis. A change of the
 * code that should change nothing for users leaves `public-names.txt` as it is. Commands, YAML keys and parts stand in the
 * generated pages of docs/, which have a test of their own.
 *
 * After a change that is meant: `npx vitest run test/public-names.test.ts -u`.
 */
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { createKeys } from '../src/store/redis/keys.ts'
import { sqliteStore } from '../src/store/sqlite/store.ts'

const root = resolve(import.meta.dirname, '..')
const sources = globSync('src/**/*.ts', { cwd: root })
  .filter((file) => !/\.(test|contract)\.ts$|\/testing\//u.test(file))
  .map((file) => readFileSync(join(root, file), 'utf8'))

/** All that the pattern's first group finds in the source. */
function inSource(pattern: RegExp): string[] {
  return [...new Set(sources.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name!)))]
}

async function exported(): Promise<string[]> {
  const doors = Object.entries(manifest.exports).flatMap(([door, target]) =>
    typeof target === 'string' ? [] : [{ door, file: target.default.replace(/^\.\/dist\/(.*)\.js$/u, 'src/$1.ts') }],
  )
  const names = await Promise.all(
    doors.map(async ({ door, file }) =>
      Object.keys((await import(resolve(root, file))) as object).map((name) => `${door} ${name}`),
    ),
  )
  return names.flat()
}

interface Row {
  type: string
  name: string
}

async function sqlNames(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-'))
  try {
    const path = join(folder, 'millrace.db')
    await sqliteStore(path).close()
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare("SELECT type, name FROM sqlite_schema WHERE type <> 'index'").all() as unknown as Row[]
    const names = rows.flatMap(({ type, name }) => {
      const columns = db.prepare('SELECT name FROM pragma_table_xinfo(?)').all(name) as unknown as Row[]
      return type === 'trigger' ? [`trigger ${name}`] : columns.map((column) => `${type} ${name}.${column.name}`)
    })
    db.close()
    return names
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function redisKeys(): string[] {
  const keys = createKeys('prefix')
  return Object.entries(keys).flatMap(([name, key]) => {
    if (name === 'tag' || name === 'tagOf' || name === 'prefix') return []
    const made =
      typeof key === 'function'
        ? (key as (id: string | number) => string)(name === 'note' || name === 'changed' ? 0 : 'id')
        : key
    return typeof made === 'string' ? [`${name} ${made}`] : []
  })
}

test('the names that users rely on are those of public-names.txt', async () => {
  const sections: Record<string, string[]> = {
    exports: await exported(),
    routes: inSource(/\b(?:app|routes)\.((?:get|post|put|delete|all|on)\(\s*['`][^'`]+)/gu).map((route) =>
      route.replace('(', ' ').replace(/['`]/u, ''),
    ),
    'error codes': inSource(/\bMillraceError\(\s*'([a-z-]+)'/gu),
    metrics: inSource(/\b(millrace_[a-z_]+)/gu),
    'SQL columns and triggers': await sqlNames(),
    'Redis keys': redisKeys(),
  }
  for (const [name, found] of Object.entries(sections)) expect(found.length, name).toBeGreaterThan(5)
  const text = Object.entries(sections).map(([name, found]) => `# ${name}\n${found.toSorted().join('\n')}\n`)
  await expect(text.join('\n')).toMatchFileSnapshot('public-names.txt')
})
