/** Qwen Code from npm, with Millrace as its model: it asks, runs a tool of its own, and prints the answer. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, entriesOf, only } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const version = '0.24.4'
const run = promisify(execFile)
const root = mkdtempSync(join(tmpdir(), 'millrace-qwen-'))
const program = join(root, 'node_modules/.bin/qwen')

beforeAll(async () => {
  writeFileSync(join(root, 'package.json'), '{}')
  await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `@qwen-code/qwen-code@${version}`], {
    cwd: root,
  })
}, 300_000)
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('it streams an answer, and its own tool is called and answered in one thread', { timeout: 180_000 }, async () => {
  const work = join(root, 'work')
  for (const folder of [work, join(root, 'home')]) mkdirSync(folder)
  const note = join(work, 'note.txt')
  writeFileSync(note, 'The mill stands in Leiden.\n')
  const model = createTold((prompt) => {
    const result = resultsIn(prompt).get('call_read')
    return result === undefined
      ? [toolCall('call_read', 'read_file', { file_path: note }), finish('tool-calls')]
      : [text(JSON.stringify(result).includes('Leiden') ? 'It stands in Leiden.' : 'I could not read it.'), finish()]
  })
  const server = await startServer({ agents: { mill: agent() }, scripts: { m: model } })
  onTestFinished(() => server.close())
  const asked = run(program, ['--auth-type', 'openai', '--approval-mode', 'yolo', '-p', 'Where is the mill?'], {
    cwd: work,
    env: {
      PATH: process.env['PATH'],
      HOME: join(root, 'home'),
      OPENAI_API_KEY: 'none',
      OPENAI_BASE_URL: `${server.url}/v1`,
      OPENAI_MODEL: 'mill',
    },
  })
  asked.child.stdin!.end()
  expect((await asked).stdout).toContain('It stands in Leiden.')
  const runs = await server.store.runs.list()
  const ends = await Promise.all(runs.map(async ({ id }) => only(await entriesOf(server.store, id), 'run-end')))
  expect(ends.flat().map(({ outcome }) => outcome)).not.toContain('failed')
})
