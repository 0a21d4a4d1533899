/** The built package in Bun, Deno and workerd: the same cases in each, side by side. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readDocument } from '../docs/documents.ts'
import { installPacked, manifest, packInto } from '../support/packed.ts'
import { startUpstream, type Upstream, type UpstreamReply } from '../support/upstream.ts'
import { cases, casesWithoutWaitUntil, type Place } from './cases.ts'
import { launch, type Launched } from './launch.ts'
import { findPrograms, versions, type Program } from './programs.ts'

const programs = await findPrograms()
const names = Object.keys(versions) as Program[]
const title = programs instanceof Error ? '%s (needs Bun, Deno and workerd from npm)' : '%s'
const root = mkdtempSync(join(tmpdir(), 'millrace-runtimes-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const exec = promisify(execFile)
const bare = `
import { createRuntime } from 'millrace'
import { createHandler } from 'millrace/server'
const agents = { a: 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]' }
const response = await createHandler({ runtime: createRuntime({ agents }) })(new Request('http://x/health'))
console.log(response.status)
`
const passed = new Set<string>()
let packed: string
beforeAll(async () => {
  if (!(programs instanceof Error)) packed = join(root, (await packInto(root)).filename)
})

describe.skipIf(programs instanceof Error).each(names)(title, (program) => {
  let upstream: Upstream
  let launched: Launched
  const arrived: UpstreamReply[] = []
  const waiting: ((reply: UpstreamReply) => void)[] = []
  const place = (): Place => ({
    url: launched.url,
    upstream,
    headers: {},
    asked: async () => arrived.shift() ?? new Promise((resolve) => waiting.push(resolve)),
  })

  beforeAll(async () => {
    upstream = await startUpstream((reply) => {
      const next = waiting.shift()
      if (next === undefined) arrived.push(reply)
      else next(reply)
    })
    const project = join(root, program)
    mkdirSync(project)
    await installPacked(project, packed)
    const main = readFileSync(join(import.meta.dirname, 'main.ts'), 'utf8').replace('BASE_URL', upstream.baseURL)
    writeFileSync(join(project, 'package.json'), '{"type":"module","private":true}')
    writeFileSync(join(project, 'main.ts'), main)
    launched = await launch(programs as Exclude<typeof programs, Error>, program, project, 'main.ts')
  })
  afterAll(async () => {
    await launched?.close()
    await upstream?.close()
  })

  const own = program === 'workerd' ? [...cases, ...casesWithoutWaitUntil] : cases
  test.for(own)('%s', async ([name, run]) => {
    await run(place())
    expect(arrived, launched.printed()).toEqual([])
    passed.add(`${program}: ${name}`)
  })
})

test.skipIf(programs instanceof Error)(
  'Deno starts the command, and makes a runtime without any permission (needs Bun, Deno and workerd from npm)',
  async () => {
    const { deno } = programs as Exclude<typeof programs, Error>
    const project = join(root, 'deno')
    const run = async (args: string[]) => (await exec(deno, args, { cwd: project })).stdout
    const command = join(project, 'node_modules/millrace/bin/millrace.js')
    expect(await run(['run', '-A', command, '--version'])).toBe(`${manifest.version}\n`)
    writeFileSync(join(project, 'bare.ts'), bare)
    expect(await run(['run', '--no-prompt', 'bare.ts'])).toBe('200\n')
  },
)

test.skipIf(programs instanceof Error)(
  'docs/runtimes.md has the table of what has passed (needs Bun, Deno and workerd from npm)',
  () => {
    const cell = (program: Program, name: string) => {
      const alone = program !== 'workerd' || (passed.has(`workerd: ${name} (no waitUntil)`) && !name.startsWith('POST'))
      return passed.has(`${program}: ${name}`) ? (alone ? 'yes' : 'with `waitUntil`') : 'no'
    }
    const rows = cases.map(([name]) => `| ${name} | ${names.map((program) => cell(program, name)).join(' | ')} |`)
    const head = `| | ${names.map((name) => `${name} ${versions[name]}`).join(' | ')} |`
    const table = [head, `| --- |${' --- |'.repeat(names.length)}`, ...rows].join('\n')
    console.log(table)
    expect(readDocument('docs/runtimes.md')).toContain(table)
  },
)
