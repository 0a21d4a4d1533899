/** A run whose own work kills its server, in processes that really die: it is not begun again at every start for ever. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sqliteStore } from '../../src/record.ts'
import { mostRecoveries } from '../../src/engine/state.ts'
import { entriesOf, only } from '../support/engine.ts'

const root = resolve(import.meta.dirname, '../..')
let dir: string
beforeAll(() => void (dir = mkdtempSync(join(tmpdir(), 'millrace-deadly-'))))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

/** A server's life: it starts the run, or goes on with what it finds; its end is the exit code. */
function live(db: string, tool: string, yaml: string): Promise<number> {
  const program = `
import { writeFileSync, existsSync } from 'node:fs'
import { createRuntime } from '${root}/src/index.ts'
import { sqliteStore } from '${root}/src/record.ts'
import { createTold, resultsIn } from '${root}/test/support/going-on.ts'
import { finish, text, toolCall } from '${root}/src/models/testing/scripted-model.ts'
const dies = (mark) => existsSync(mark) ? 'survived' : (writeFileSync(mark, ''), process.exit(9))
const m = createTold((prompt) => {
  const results = resultsIn(prompt)
  const outputs = [...results.values()].map((output) => JSON.stringify(output))
  if (results.size > 40 || outputs.some((output) => output.includes('survived'))) return [text('through'), finish()]
  return [toolCall('call_' + results.size, 'deadly', {}), finish('tool-calls')]
})
const store = sqliteStore(${JSON.stringify(db)})
const runtime = createRuntime({
  agents: { a: ${JSON.stringify(yaml)} },
  store,
  environment: {},
  tools: { deadly: ${tool} },
  models: { providers: { script: () => m } },
})
const before = await store.runs.get('run_it')
if (before === undefined) await runtime.start('a', { messages: [{ role: 'user', content: 'Go' }] }, { runId: 'run_it' })
else await runtime.recover()
await (await runtime.open('run_it')).result
await runtime.close()
`
  return new Promise((done, fail) => {
    const args = ['--input-type=module-typescript', '-e', program]
    // The first life compiles, the others take what it has left.
    const env = { ...process.env, NODE_COMPILE_CACHE: join(dir, 'compiled') }
    execFile(process.execPath, args, { cwd: root, env, timeout: 30_000 }, (error, _, stderr) => {
      if (error === null) done(0)
      else if (error.code === 9) done(9)
      else fail(new Error(`${error.message}\n${stderr}`))
    })
  })
}

async function lives(db: string, tool: string, yaml: string): Promise<number> {
  for (let deaths = 0; deaths < 12; deaths++) if ((await live(db, tool, yaml)) === 0) return deaths
  throw new Error('it dies at every start')
}

async function read(db: string) {
  const store = sqliteStore(db)
  try {
    return await entriesOf(store, 'run_it')
  } finally {
    await store.close()
  }
}

const answer = 'type: llm, config: { model: "script:m", maxSteps: 50, tools: [deadly] }'

describe('a run that crashes its server', () => {
  test.each([
    ['one that may be run twice', true],
    ['one that may not, which the model asks for again', false],
  ])(
    'a tool that kills its server, %s: after three recoveries the run is ended and says why',
    async (_, idempotent) => {
      const db = join(dir, `deadly-${idempotent}.db`)
      const tool = `{ parameters: { type: 'object' }, idempotent: ${idempotent}, execute: () => process.exit(9) }`
      expect(await lives(db, tool, `recover: true\nworkflow: [{ id: answer, ${answer} }]`)).toBe(1 + mostRecoveries)
      const entries = await read(db)
      expect(only(entries, 'warning').map(({ code }) => code)).toEqual(Array(mostRecoveries).fill('recovered'))
      const message = expect.stringContaining('It was recovered 3 times without progress')
      expect(only(entries, 'run-end')).toMatchObject([{ outcome: 'interrupted', error: { message } }])
    },
  )

  test('a run that gets somewhere between its crashes goes on as often as it takes', async () => {
    const db = join(dir, 'slow.db')
    // Dies in each round the first time: with a new mark each.
    const tool = `{ parameters: { type: 'object' }, idempotent: true,
    execute: (_, { toolCallId, messages }) => dies(${JSON.stringify(dir)} + '/mark' + messages[0].content) }`
    const yaml = `recover: true
workflow:
  - id: all
    type: loop
    config:
      over: [a, b, c, d, e, f]
      steps: [{ id: answer, type: llm, config: { model: "script:m", messages: "$item", tools: [deadly] } }]`
    expect(await lives(db, tool, yaml)).toBe(6)
    expect(only(await read(db), 'run-end')).toMatchObject([{ outcome: 'completed' }])
  })
})
