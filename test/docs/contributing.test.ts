/** CONTRIBUTING.md is a map: it has every room once, and every command and file that it names exists. docs/README.md has every page. */
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { readDocument } from './documents.ts'

const text = readDocument('CONTRIBUTING.md')

describe('CONTRIBUTING.md', () => {
  test.each([
    ['src', /^\| `([\w-]+\/)` \|/gmu],
    ['web', /^\| `web\/([\w-]+\/)` \|/gmu],
    ['test', /^\| `test\/([\w-]+\/)` \|/gmu],
  ])('every folder of %s has one row in the map', (folder, row) => {
    const rooms = readdirSync(folder, { withFileTypes: true }).flatMap((each) =>
      each.isDirectory() ? [`${each.name}/`] : [],
    )
    expect(rooms.length).toBeGreaterThan(4)
    expect([...text.matchAll(row)].map(([, name]) => name!).toSorted()).toEqual(rooms.toSorted())
  })

  test('every script that it tells to run exists', () => {
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
    const named = [...text.matchAll(/`npm run ([\w:]+)/gu)].map(([, name]) => name!)
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((name) => !(name in scripts))).toEqual([])
  })

  test('every file that a recipe names exists', () => {
    const named = [...text.matchAll(/`((?:src|test|scripts|docs)\/[\w./-]+\.(?:ts|tsx|md|json|txt|sh))`/gu)].map(
      ([, path]) => path!,
    )
    expect(named.length).toBeGreaterThan(15)
    expect(named.filter((path) => globSync(path).length === 0)).toEqual([])
  })

  test('every page of docs is in the index', () => {
    const pages = globSync('docs/**/*.md').filter((page) => page !== 'docs/README.md')
    const rows = [...readDocument('docs/README.md').matchAll(/^\| \[[^\]]+\]\(([^)]+\.md)\)/gmu)].map(([, to]) => to!)
    expect(rows.filter((to) => !to.startsWith('migration/') && !to.startsWith('../')).length).toBeGreaterThan(40)
    const listed = rows.map((to) => `docs/${to}`)
    expect(pages.filter((page) => !page.startsWith('docs/migration/') && !listed.includes(page))).toEqual([])
  })
})
