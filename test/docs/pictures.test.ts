/** The pictures of the page are there for readers: every document shows those that exist, and each picture is shown. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

describe('docs: pictures', () => {
  test('every picture is shown in a document, and every picture that a document shows is there', () => {
    const shown = ['README.md', ...globSync('docs/*.md')].flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/(?:src|srcset)="([^"]+\.png)"|!\[[^\]]*\]\(([^)]+\.png)\)/gu)]
        .map(([, html, markdown]) => (html ?? markdown)!)
        .filter((path) => !path.startsWith('http'))
        .map((path) => resolve(dirname(file), path)),
    )
    expect(shown.filter((path) => !existsSync(path))).toEqual([])
    const all = readdirSync('docs/images').map((name) => resolve(join('docs/images', name)))
    expect(all.length).toBeGreaterThan(10)
    expect(all.filter((path) => !shown.includes(path))).toEqual([])
  })
})
