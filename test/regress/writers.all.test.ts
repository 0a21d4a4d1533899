/** Processes that add cases to one folder at the same time. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readCases } from '../../src/regress/read-cases.ts'
import { folder } from '../support/cli.ts'

const recording = JSON.stringify(
  readFileSync(new URL('../../tests/recordings/assistant/needs-no-tool-to-greet.ndjson', import.meta.url), 'utf8'),
)
const addCase = new URL('../../src/regress/add-case.ts', import.meta.url).href
/** Begins when all are there. */
const program = (name: string) => `
const { addCase } = await import('${addCase}')
const entries = ${recording}.trim().split('\\n').map((line) => JSON.parse(line))
process.stdout.write('ready')
await new Promise((begin) => process.stdin.once('data', begin))
for (let n = 0; n < 10; n++) {
  for (;;) {
    try {
      addCase('tests', [entries], { name: n % 2 ? 'same' : '${name} ' + n, cwd: process.cwd() })
      break
    } catch (error) {
      if (error.code !== 'tests-changed') throw error
    }
  }
}
process.exit(0)
`

test('no case is lost, and each has its recording', async () => {
  const cwd = folder({})
  const names = ['ann', 'bob', 'eve']
  const processes = names.map((name) =>
    spawn(process.execPath, ['--input-type=module', '-e', program(name)], { cwd, stdio: ['pipe', 'pipe', 'inherit'] }),
  )
  await Promise.all(processes.map(({ stdout }) => once(stdout, 'data')))
  for (const { stdin } of processes) stdin.write('go')
  const codes = await Promise.all(processes.map((each) => once(each, 'exit')))
  expect(codes.map(([code]) => code as number)).toEqual([0, 0, 0])
  const { cases } = readCases(readFileSync(join(cwd, 'tests/assistant.yaml'), 'utf8'), 'assistant.yaml')
  expect(cases).toHaveLength(30)
  for (const name of names)
    for (const n of [0, 2, 4, 6, 8]) expect(cases.map((each) => each.name)).toContain(`${name} ${n}`)
  expect(readdirSync(join(cwd, 'tests/recordings/assistant')).toSorted()).toEqual(
    cases.map(({ slug }) => `${slug}.ndjson`).toSorted(),
  )
  expect(readdirSync(join(cwd, 'tests')).toSorted()).toEqual(['assistant.yaml', 'recordings'])
})
