/** What a run leaves behind: nothing that would keep its process from ending. */
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../../src')

/** Runs a program to its own end, without anybody closing its runtime. */
function runProgram(workflow: string, steps: string, body: string): Promise<string> {
  const program = `
import { createRuntime } from '${src}/index.ts'
const began = Promise.withResolvers()
const runtime = createRuntime({ agents: { a: ${JSON.stringify(workflow)} }, environment: {}, steps: ${steps} })
const run = await runtime.start('a', {})
${body}
const { outcome } = await run.result
const timers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
console.log(outcome, timers.length)
`
  const args = ['--input-type=module-typescript', '-e', program]
  return new Promise((done, fail) => {
    execFile(process.execPath, args, { timeout: 30_000 }, (error, stdout, stderr) => {
      if (error === null) done(stdout.trim())
      else fail(new Error(`${error.message}\n${stderr}`))
    })
  })
}

const obeys = `(_, { signal }) => new Promise((_, reject) => {
  signal.addEventListener('abort', () => reject(signal.reason))
  began.resolve()
})`

describe('exit of the process', () => {
  test('a run that was stopped leaves no timer: its process can end at once', async () => {
    const workflow = 'workflow: [{ id: waits, type: waits }]'
    expect(await runProgram(workflow, `{ waits: ${obeys} }`, 'await began.promise; await run.stop()')).toBe('aborted 0')
  })

  test('nor do branches that were stopped because another one failed', async () => {
    const workflow = `workflow:
  - id: both
    type: parallel
    config: { branches: { a: [{ id: x, type: waits }], b: [{ id: y, type: fails }] } }`
    const fails = '() => { throw new Error("no") }'
    expect(await runProgram(workflow, `{ waits: ${obeys}, fails: ${fails} }`, '')).toBe('failed 0')
  })
})
