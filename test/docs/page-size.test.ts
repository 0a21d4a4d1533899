/** The page is as small as docs/performance.md says, and names what is in it. Needs `npm run build`, as `npm test` does. */
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { readDocument } from './documents.ts'

const web = resolve(import.meta.dirname, '../../dist/web')
const sizeOf = (file: string) => gzipSync(readFileSync(resolve(web, file))).length / 1000
const table = new Map(
  [...readDocument('docs/performance.md').matchAll(/^\| ([\w ]+?)[:,]?(?: [^|]*)? \| (\d+) KB \|$/gmu)].map(
    ([, part, most]) => [part!.split(' ', 1)[0]!, Number(most)],
  ),
)
const most = (part: string) => table.get(part)!

/** What `GET /` loads before any room. */
const core = [...readFileSync(resolve(web, 'index.html'), 'utf8').matchAll(/(?:src|href)="\/(assets\/[^"]+)"/gu)].map(
  ([, file]) => file!,
)
const rest = globSync('assets/*.{js,css}', { cwd: web }).filter((file) => !core.includes(file))

describe('docs: size of the page', () => {
  test('the core is small', () => {
    expect(core.length).toBeGreaterThan(1)
    expect(core.reduce((sum, file) => sum + sizeOf(file), 0)).toBeLessThan(most('core'))
    expect(most('core')).toBeLessThanOrEqual(150)
  })

  test('what is loaded later is small, or stated', () => {
    expect(rest.length).toBeGreaterThan(10)
    const large = rest.map((file) => [file, sizeOf(file)] as const).filter(([file, size]) => size > limitOf(file))
    expect(large).toEqual([])
    expect(rest.map(limitOf).filter(Number.isNaN)).toEqual([])
  })

  function limitOf(file: string): number {
    const name = /^assets\/(.*)-[\w-]{8}\.\w+$/u.exec(file)?.[1] ?? file
    return table.get(name) ?? (name.endsWith('Room') ? most('each') : most('anything'))
  }

  test('every package that is in the page is named with its licence', () => {
    const text = readFileSync(resolve(web, 'licenses.txt'), 'utf8')
    for (const name of ['react', 'react-dom', 'wouter', '@codemirror/view', 'marked']) {
      expect(text).toMatch(
        new RegExp(`^${name} \\d+\\.\\d+\\.\\d+: MIT$|^${name} \\d+\\.\\d+\\.\\d+: Unlicense$`, 'mu'),
      )
    }
    expect(text).toContain('Permission is hereby granted, free of charge')
  })
})
