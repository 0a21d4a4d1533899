/**
 * The server is killed (SIGKILL) while all tests run and ask the models: nothing hangs as running, what was done is kept, and the rest is run by the
 * next server.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { spawnServer } from '../support/server-process.ts'

const scripted = new URL('../../src/models/scripted.ts', import.meta.url).href
const count = 12
const before = 5

test('killed in the middle of a run of tests', { timeout: 60_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-tests-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  for (const name of ['agents', 'tests']) mkdirSync(join(dir, name))
  /** What the model waits for; from the sixth answer on it waits for ever. */
  const held: ServerResponse[] = []
  let asked = 0
  const world = createServer((_, response) => void (++asked > before ? held.push(response) : response.end('ok')))
  await new Promise<void>((resolve) => void world.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    world.close()
    world.closeAllConnections()
  })
  const place = `http://127.0.0.1:${(world.address() as AddressInfo).port}/`
  writeFileSync(
    join(dir, 'agents/millrace.config.mjs'),
    `import { createScriptedModel, finish, latch, text } from '${scripted}'
const model = createScriptedModel(() => {
  const gate = latch()
  void fetch('${place}').then(() => gate.open())
  return [gate, text('It is five.'), finish()]
})
export default { models: { providers: { echo: () => model } } }
`,
  )
  writeFileSync(
    join(dir, 'agents/a.yaml'),
    // Would be resumed, with its tools, if a run of it were left in the store.
    'recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "echo:x", stream: true, messages: $input.messages } }]\n',
  )
  const names = Array.from({ length: count }, (_, n) => `case ${n}`)
  writeFileSync(
    join(dir, 'tests/a.yaml'),
    `agent: a\ncases:\n${names.map((name) => `  - { name: ${name}, message: Hi, expect: { text: five } }\n`).join('')}`,
  )
  const boot = () => spawnServer(join(dir, 'agents'), join(dir, 'data'))
  let server = await boot()
  onTestFinished(() => server.kill())
  const get = async (path: string): Promise<any> => (await fetch(`${server.url}/api/${path}`)).json()
  const start = async (body: object): Promise<any> => {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(body) }
    return (await fetch(`${server.url}/api/tests/run`, init)).json()
  }
  await start({ record: true })
  await expect.poll(async () => (await get('tests')).run.passed, { timeout: 20_000 }).toBe(before)
  await expect.poll(() => held.length).toBeGreaterThan(0)
  const { cases: seen } = await get('tests')
  await server.kill()

  server = await boot()
  // Whoever follows it learns of its end.
  const progress = await (await fetch(`${server.url}/api/tests/progress`)).text()
  expect(progress).toContain('"isInterrupted":true')
  const { run, cases } = await get('tests')
  expect(run).toMatchObject({ total: count, passed: before, failed: 0, stopped: count - before, running: [] })
  expect(run).toMatchObject({ record: true, isInterrupted: true, endedAt: expect.any(Number) })
  const states = (all: any[]) => all.map((each) => each.last?.status)
  expect(states(cases)).toEqual(states(seen))
  const { runs } = await get('runs?limit=100')
  expect(runs.map(({ status }: { status: string }) => status)).toEqual(
    Array.from({ length: before }, () => 'completed'),
  )

  // The rest, as it was started: it asks the models, and those that are done are not asked again.
  for (const response of held) response.destroy()
  asked = -1000
  expect((await start({ rest: true })).run).toMatchObject({ total: count - before, record: true })
  await expect.poll(async () => (await get('tests')).run.endedAt, { timeout: 20_000 }).toBeDefined()
  expect(asked).toBe(count - before - 1000)
  const after = await get('tests')
  expect(after.run).toMatchObject({ passed: count - before, stopped: 0 })
  expect(after.cases.every((each: any) => each.last.status === 'passed' && each.last.isLive && each.isRecorded)).toBe(
    true,
  )
  expect((await start({ rest: true })).error.message).toBe('Nothing is left of the last run of tests.')
})
