/** Each row of the page names what shows it. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('each row names a recording or a test that is there', () => {
  const page = new URL('../../docs/compatibility.md', import.meta.url)
  const rows = readFileSync(page, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (?:Server|Client) \|/u.test(line))
  expect(rows.length).toBeGreaterThan(10)
  for (const row of rows) {
    const cells = row.split('|').slice(1, -1)
    expect([row, cells.length, cells.every((cell) => cell.trim() !== '')]).toEqual([row, 5, true])
    const targets = [...cells[4]!.matchAll(/\]\(([^)]+)\)/gu)].map(([, target]) => target!)
    const missing = targets.filter((target) => !existsSync(new URL(target, page)))
    expect([row, targets.length > 0, missing]).toEqual([row, true, []])
  }
})
