/** Each row of the page names what shows it. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'

describe('docs: compatibility', () => {
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

  const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  const clients = read('docs/compatibility.md').split('\n## Clients\n')[1]!.split('\n## ', 1)[0]!
  const rowOf = (name: string) => clients.split('\n').find((line) => line.split('|')[1]?.includes(name))

  test('each CLI that docs/coding-clis.md sets up has a row with the version that its test installs', () => {
    const told = [...read('docs/coding-clis.md').matchAll(/^\| \[([^\]]+)\]\(#[\w-]+\)[^|]* ([\d.]+) \|/gmu)]
    expect(told.length).toBeGreaterThan(8)
    for (const [, name, version] of told) expect([name, rowOf(name!)?.split('|')[2]?.trim()]).toEqual([name, version])
  })

  test('each client package has a row with the version that its tests have', () => {
    const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: Record<string, string> }
    for (const name of ['openai', '@langchain/openai', '@ag-ui/client', '@copilotkit/core', 'socket.io-client']) {
      const [major] = /\d+/u.exec(devDependencies[name]!)!
      expect([name, rowOf(`\`${name}\``)?.split('|')[2]?.match(/\d+/u)?.[0]]).toEqual([name, major])
    }
  })
})
