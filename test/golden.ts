/** Golden files. `UPDATE_GOLDEN=1` writes them again: read the diff before you commit it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect } from 'vitest'

export function golden(url: URL, body: string): void {
  if (process.env['UPDATE_GOLDEN']) writeFileSync(url, body)
  const name = basename(url.pathname)
  if (!existsSync(url)) throw new Error(`${name} is missing: run with UPDATE_GOLDEN=1 and read what it wrote`)
  expect(body, name).toBe(readFileSync(url, 'utf8'))
}
