/**
 * The official conformance suite of MCP, against agents with the names that it wants (`conformance/agents`), in both revisions. What it fails is listed in
 * `conformance/gaps-*.yaml`: a gap that is not there any more fails this test, too.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createListeners } from '../../src/server/serve.ts'
import { installed, type Installed } from '../support/from-npm.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { renaming } from './conformance/renamed.ts'
import { scripts, steps } from './conformance/steps.ts'

const run = promisify(execFile)
const here = join(import.meta.dirname, 'conformance')
const version = '0.2.0-alpha.12'
const tasks = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
]

let npm: Installed | undefined
let root: string
let suite: string
let server: TestServer | undefined
let front: Awaited<ReturnType<typeof renaming>> | undefined

beforeAll(async () => {
  const name = '@modelcontextprotocol/conformance'
  npm = await installed([`${name}@${version}`])
  if (npm === undefined) return
  root = npm.root
  suite = join(root, 'node_modules', name, 'dist/index.js')
  const files = readdirSync(join(here, 'agents'))
  const agents = Object.fromEntries(
    files.map((file) => [file.replace('.yaml', ''), readFileSync(join(here, 'agents', file), 'utf8')]),
  )
  const reloads = createListeners()
  const changeTools = () => {
    const { metadata } = server!.runtime.agents.get('changing')!.pipeline
    metadata.hidden = metadata.hidden !== true
    reloads.tell()
    return 'Changed.'
  }
  server = await startServer(
    { agents, scripts, steps: { ...steps, changeTools } },
    { localOnly: true, mcp: { taskAfter: 300 }, onAgents: reloads.listen },
  )
  // Resources are runs: the suite reads the files of this one, and its thread.
  const { runtime } = server
  const fixture = await runtime.start('fixtures', {}, { threadId: '123', protocol: 'api' })
  await fixture.result
  front = await renaming(
    server.url,
    new Map([
      ['test://static-text', `run://${fixture.id}/files/1`],
      ['test://static-binary', `run://${fixture.id}/files/2`],
      ['test://template/123/data', 'thread://123'],
      ['test_simple_prompt', 'fixtures.test_simple_prompt'],
      ['test_prompt_with_arguments', 'fixtures.test_prompt_with_arguments'],
    ]),
  )
}, 300_000)

afterAll(async () => {
  await front?.close()
  await server?.close()
  npm?.remove()
}, 60_000)

/** Resolves with what failed and stands in no list of gaps, or stands there and did not fail; and with nothing otherwise. */
async function failuresOf(name: string, ...args: string[]): Promise<string> {
  const results = join(root, name)
  const baseline = join(here, `gaps-${name.startsWith('tasks') ? 'tasks' : name}.yaml`)
  const all = [suite, 'server', '--url', `${front!.url}/mcp`, '-o', results, ...args, '--expected-failures', baseline]
  const ended = run(process.execPath, all, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
  const said = await ended.then(
    () => '',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => `${stdout.slice(-3000)}\n${stderr.slice(-3000)}`,
  )
  return said === '' ? '' : `${checksIn(results).join('\n')}\n${said}`
}

/** The checks that are not passed, as a list of gaps names them. */
function checksIn(results: string): string[] {
  return readdirSync(results, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('checks.json'))
    .flatMap((file) => {
      const checks = JSON.parse(readFileSync(join(results, file), 'utf8')) as Record<string, string>[]
      const scenario = file.replace(/^server-/u, '').replace(/-\d{4}-\d{2}-\d{2}T.*$/su, '')
      return checks
        .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
        .map(({ id, status, errorMessage }) => `${scenario}:${id} ${status} ${errorMessage}`)
    })
}

describe('the conformance suite', () => {
  test.for(['2026-07-28', '2025-11-25'])('%s', { timeout: 600_000 }, async (revision, { skip }) => {
    skip(npm === undefined, 'needs the npm registry')
    expect(await failuresOf(revision, '--requirements', revision)).toBe('')
  })

  test.for(tasks)('%s', { timeout: 120_000 }, async (scenario, { skip }) => {
    skip(npm === undefined, 'needs the npm registry')
    expect(await failuresOf(scenario, '--scenario', scenario, '--force')).toBe('')
  })
})
