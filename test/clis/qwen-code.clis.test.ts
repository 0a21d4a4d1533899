/**
 * Qwen Code from npm, with Millrace as its model: it asks, runs a tool of its own, and prints the answer. And as a step of an agent, whose log
 * has its model calls, its tool and its tokens.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { agent, createEngine, entriesOf, only } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { startServer } from '../support/server.ts'

const version = '0.24.4'
const run = promisify(execFile)
const root = mkdtempSync(join(tmpdir(), 'millrace-qwen-'))
const program = join(root, 'node_modules/.bin/qwen')

describe('Qwen Code', () => {
  beforeAll(async () => {
    writeFileSync(join(root, 'package.json'), '{}')
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', `@qwen-code/qwen-code@${version}`], {
      cwd: root,
    })
  }, 300_000)
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  test(
    'it streams an answer, and its own tool is called and answered in one thread',
    { timeout: 180_000 },
    async () => {
      const work = join(root, 'work')
      for (const folder of [work, join(root, 'home')]) mkdirSync(folder)
      const note = join(work, 'note.txt')
      writeFileSync(note, 'The mill stands in Leiden.\n')
      const model = createTold((prompt) => {
        const result = resultsIn(prompt).get('call_read')
        return result === undefined
          ? [toolCall('call_read', 'read_file', { file_path: note }), finish('tool-calls')]
          : [
              text(JSON.stringify(result).includes('Leiden') ? 'It stands in Leiden.' : 'I could not read it.'),
              finish(),
            ]
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
    },
  )

  test(
    'as a step: two model calls, a tool that it runs itself, and the tokens that its model reported',
    { timeout: 180_000 },
    async () => {
      const folders = ['step', 'step-home'].map((name) => join(root, name))
      for (const folder of folders) mkdirSync(folder)
      const [work, home] = folders as [string, string]
      writeFileSync(join(work, 'note.txt'), 'The mill stands in Leiden.\n')
      const model = createTold((prompt) => {
        const result = resultsIn(prompt).get('call_read')
        return result === undefined
          ? [
              text('Let me look.'),
              toolCall('call_read', 'read_file', { file_path: join(work, 'note.txt') }),
              finish('tool-calls'),
            ]
          : [text('It stands in Leiden.'), finish()]
      })
      const server = await startServer({ agents: { mill: agent() }, scripts: { m: model } })
      onTestFinished(() => server.close())
      const code = `
workflow:
  - id: code
    type: cli-agent
    config:
      cli: qwen
      command: ${JSON.stringify(program)}
      cwd: ${JSON.stringify(work)}
      prompt: Where is the mill?
      permissionMode: yolo
      args: [--auth-type, openai]
      env: [OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL]
`
      const environment = {
        PATH: process.env['PATH']!,
        HOME: home,
        OPENAI_API_KEY: 'none',
        OPENAI_BASE_URL: `${server.url}/v1`,
        OPENAI_MODEL: 'mill',
      }
      const engine = createEngine({ agents: { code }, environment })
      onTestFinished(() => engine.close())
      const run = await engine.runtime.start('code', {})
      const { outcome, usage } = await run.result
      const entries = await entriesOf(engine.store, run.id)
      expect(outcome).toBe('completed')
      expect(only(entries, 'session-info')[0]!.providerMetadata).toMatchObject({ qwen: { version } })
      const said = only(entries, 'text-delta').map(({ step, delta }) => [step, delta])
      expect(said).toEqual([
        ['main/code/1', 'Let me look.'],
        ['main/code/2', 'It stands in Leiden.'],
      ])
      expect(only(entries, 'tool-call')).toMatchObject([{ step: 'main/code/1', toolName: 'read_file' }])
      expect(JSON.stringify(only(entries, 'tool-result')[0]!.result)).toContain('Leiden')
      expect(usage.source).toBe('reported')
    },
  )
})
