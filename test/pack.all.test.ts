/** The package as others get it: as a release packs it, unpacked into an empty project, every door opened in plain Node, by the compiler and in a bundle. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { rolldown, type OutputChunk } from 'rolldown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installPacked, linkFrom, manifest, packReleaseInto } from './support/packed.ts'

const exec = promisify(execFile)
const doors = Object.keys(manifest.exports).filter((door) => !door.endsWith('.json'))
const nameOf = (door: string) => manifest.name + door.slice(1)

const project = mkdtempSync(join(tmpdir(), 'millrace-pack-'))
const installed = join(project, 'node_modules', manifest.name)
let files: string[]
afterAll(() => rmSync(project, { recursive: true, force: true }))

beforeAll(async () => {
  const packed = await packReleaseInto(project)
  files = packed.files
  await installPacked(project, join(project, packed.filename))
  // Who opens the doors of other libraries has them.
  for (const name of Object.keys(manifest.peerDependencies)) linkFrom(project, name)
  writeFileSync(join(project, 'package.json'), '{"type":"module","private":true}')
}, 60_000)

async function node(script: string): Promise<string> {
  writeFileSync(join(project, 'try.js'), script)
  return (await exec(process.execPath, ['try.js'], { cwd: project })).stdout
}

test('it holds what it needs and nothing of the tests', () => {
  expect(files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'bin/millrace.js']))
  // The decoders of model streams are derived from the AI SDK's packages.
  expect(files).toEqual(expect.arrayContaining(['LICENSE', 'NOTICE', 'LICENSE.Apache-2.0']))
  // The page, with the licences of what is in it.
  expect(files).toEqual(expect.arrayContaining(['dist/web/index.html', 'dist/web/icon.svg', 'dist/web/licenses.txt']))
  expect(files.filter((path) => /\.stamp$|\.map$/u.test(path))).toEqual([])
  expect(files.filter((path) => /\.(test|contract)\.|\/testing\/|buildinfo|fixture/u.test(path))).toEqual([])
  // The links of its page name the repository, since the documentation is not in it.
  expect(files).toContain('CHANGELOG.md')
  const manifestThere = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as object
  expect(manifestThere).toMatchObject({
    version: manifest.version,
    repository: { type: 'git' },
    homepage: expect.any(String),
    bugs: { url: expect.any(String) },
  })
  expect(manifestThere).not.toHaveProperty('scripts')
  expect(readFileSync(join(installed, 'README.md'), 'utf8')).toContain(`/blob/v${manifest.version}/docs/install.md)`)
  for (const target of Object.values(manifest.exports)) {
    for (const path of typeof target === 'string' ? [target] : Object.values(target)) {
      expect(existsSync(join(installed, path)), path).toBe(true)
    }
  }
})

test('every door opens in plain Node', async () => {
  const script = doors.map(
    (door) =>
      `console.log(JSON.stringify([${JSON.stringify(door)}, Object.keys(await import('${nameOf(door)}')).length]))`,
  )
  const opened = (await node(script.join('\n'))).trim().split('\n')
  const counts = opened.map((line) => JSON.parse(line) as [string, number])
  expect(counts.map(([door]) => door)).toEqual(doors)
  expect(counts.filter(([, count]) => count === 0)).toEqual([])
})

test('an agent runs in a program of two imports', async () => {
  const said = await node(`
    import { createRuntime } from 'millrace'
    import { createHandler } from 'millrace/server'
    const yaml = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true, messages: "$input.messages" } }]'
    const runtime = createRuntime({ agents: { assistant: yaml }, environment: { MILLRACE_DEMO_DELAY_MS: '0' } })
    const body = JSON.stringify({ agentId: 'assistant', messages: [{ role: 'user', content: 'Hello!' }] })
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://x/api/beddel/chat', { method: 'POST', body, headers })
    const response = await createHandler({ runtime })(request)
    console.log(response.status, (await response.text()).length > 10)
    await runtime.close()
  `)
  expect(said).toBe('200 true\n')
})

/** As npx finds it, with this Node. */
const env = {
  PATH: `${join(process.execPath, '..')}:${process.env['PATH']}`,
  HOME: project,
  MILLRACE_DEMO_DELAY_MS: '0',
}

test('npx finds the command, which knows its version; a server from it answers a request and serves its page', async () => {
  const { stdout } = await exec('npx', ['--offline', '--no-install', 'millrace', '--version'], { cwd: project, env })
  expect(stdout).toBe(`${manifest.version}\n`)
  const answer =
    'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true, messages: "$input.messages", tools: [calculator] } }]'
  mkdirSync(join(project, 'agents'))
  writeFileSync(join(project, 'agents/assistant.yaml'), answer)
  const server = spawn(join(project, 'node_modules/.bin/millrace'), ['serve', '--port', '0'], { cwd: project, env })
  try {
    let said = ''
    for await (const text of server.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false }))
      if (/ready at \S+\n/u.test((said += String(text)))) break
    const url = /ready at (\S+)/u.exec(said)![1]!
    const body = JSON.stringify({ agentId: 'assistant', messages: [{ role: 'user', content: 'What is 12*7?' }] })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/api/beddel/chat`, { method: 'POST', headers, body })
    expect(await response.text()).toContain('84')
    expect(await (await fetch(url, { headers: { accept: 'text/html' } })).text()).toContain('<div id="root">')
  } finally {
    server.kill()
    if (server.exitCode === null) await once(server, 'exit')
  }
})

test.each([
  ['node16', 'node16'],
  ['bundler', 'esnext'],
])(
  'the types of every door are found by a strict compiler, with moduleResolution %s',
  async (moduleResolution, module) => {
    for (const name of ['@types/node', '@types/react'])
      if (!existsSync(join(project, 'node_modules', name))) linkFrom(project, name)
    // A door whose types were missing would be `any`, and everything is in that.
    const lines = doors.map(
      (door, index) =>
        `import * as door${index} from '${nameOf(door)}'\nexport const is${index}: 'typed' = '' as 'nowhere' extends keyof typeof door${index} ? 'any' : 'typed'`,
    )
    writeFileSync(join(project, 'doors.ts'), lines.join('\n'))
    const compilerOptions = { module, moduleResolution, target: 'es2024', strict: true, noEmit: true, types: ['node'] }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['doors.ts'] }))
    const tsc = resolve('node_modules/typescript/bin/tsc')
    const { stdout } = await exec(process.execPath, [tsc, '-p', project], { cwd: project }).catch(
      (error: { stdout: string }) => error,
    )
    // Types of other packages have faults of their own: those of @ai-sdk/provider import a package without types.
    expect(stdout.split('\n').filter((line) => /^(?:doors|node_modules\/millrace\/)/u.test(line))).toEqual([])
    expect(stdout).not.toMatch(/^error /mu)
  },
)

test('a program of the library: registries, a file, an executor; and a client of a server', async () => {
  writeFileSync(
    join(project, 'shout.yaml'),
    'workflow: [{ id: a, type: shout, config: { text: "$input.text" }, result: loud }]',
  )
  const said = await node(`
    import { createServer } from 'node:http'
    import { createRuntime, handlerRegistry, loadYaml, WorkflowExecutor } from 'millrace'
    import { MillraceClient } from 'millrace/client'
    import { memoryStore, readNdjson } from 'millrace/record'
    import { createHandler } from 'millrace/server'
    handlerRegistry.shout = async ({ text }) => ({ text: text.toUpperCase() })
    console.log(JSON.stringify(await new WorkflowExecutor(await loadYaml('shout.yaml')).execute({ text: 'hey' })))

    const yaml = 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]'
    const environment = { MILLRACE_DEMO_DELAY_MS: '0' }
    const runtime = createRuntime({ agents: { assistant: yaml }, environment, store: memoryStore() })
    const handler = createHandler({ runtime, authorize: () => true })
    const client = new MillraceClient({ url: 'http://here', fetch: (url, init) => handler(new Request(url, init)) })
    const run = client.run({ agent: 'assistant', messages: 'Hello!' })
    const lines = []
    for await (const entry of run) lines.push(JSON.stringify(entry))
    const { entries, faults } = readNdjson(lines.join('\\n'))
    console.log(entries.at(-1).type, faults.length, (await run.result).outcome, (await run.text).length > 10)
    await runtime.close()
  `)
  expect(said).toBe('{"loud":{"text":"HEY"}}\nrun-end 0 completed true\n')
})

/** What docs/client.md says of each import, in bytes. */
const sizes = Array.from(
  readFileSync('docs/client.md', 'utf8').matchAll(
    /^\| `import \{ (.+) \} from 'millrace\/(.+)'` +\| ([\d.]+) kB +\|$/gmu,
  ),
  ([, names, door, size]) => ({ names: names!, door: door!, most: Number(size) * 1000 }),
)

test('the client is small: docs/client.md says of each import what a page loads with it, compressed', async () => {
  expect(sizes.map(({ door }) => door)).toEqual(expect.arrayContaining(['client', 'react', 'ag-ui']))
  for (const { names, door, most } of sizes) {
    const entry = join(project, 'size.js')
    writeFileSync(entry, `export { ${names} } from '${join(installed, `dist/${door}.js`)}'`)
    // React is not counted, and this is a file of it.
    const external = [...Object.keys(manifest.peerDependencies), 'react/jsx-runtime']
    const bundle = await rolldown({ input: entry, platform: 'browser', logLevel: 'silent', external })
    const { output } = await bundle.generate({ format: 'esm', minify: true })
    await bundle.close()
    const loaded = new Set<OutputChunk>([output[0]])
    for (const chunk of loaded) {
      for (const each of output) if (each.type === 'chunk' && chunk.imports.includes(each.fileName)) loaded.add(each)
    }
    const size = [...loaded].reduce((sum, { code }) => sum + gzipSync(code).length, 0)
    expect(size, names).toBeLessThan(most)
    expect(size, names).toBeGreaterThan(0.85 * most)
  }
})

const browserSafe = [
  ['./part', []],
  ['./ingest', []],
  ['./wire', []],
  ['./client', []],
  ['./react', ['react', 'react/jsx-runtime']],
  ['./ag-ui', ['@ag-ui/client']],
] as const
test('the doors are those of the contract', () => {
  expect(doors.toSorted()).toEqual(
    expect.arrayContaining([
      '.',
      './ag-ui',
      './client',
      './ingest',
      './langchain',
      './part',
      './react',
      './record',
      './server',
      './testing',
      './wire',
    ]),
  )
})
test.each(browserSafe)('%s bundles for a browser without Node', async (door, others) => {
  expect(await foreignIn(door)).toEqual(others)
})

test.each(['.', './server', './testing', './langchain'])(
  '%s bundles for the edge without Node of its own',
  async (door) => {
    // The packages of models and routes are the edge's to bundle.
    expect((await foreignIn(door)).filter((name) => name.startsWith('node:'))).toEqual([])
  },
)

test('a door that needs Node is seen to', async () => {
  expect(await foreignIn('./record')).toContain('node:sqlite')
})

test('in a bundle, which is one file, the thread that writes the WAL back starts all the same', async () => {
  const bundle = await rolldown({ input: join(installed, 'dist/record.js'), platform: 'node', logLevel: 'silent' })
  await bundle.write({ codeSplitting: false, file: join(project, 'bundled/record.cjs'), format: 'cjs' })
  await bundle.close()
  const said = await node(`
    import { once } from 'node:events'
    import record from './bundled/record.cjs'
    const store = record.sqliteStore('bundled/runs.db')
    const awake = setInterval(() => undefined, 1000) // the thread alone keeps no process alive
    const started = once(process, 'worker').then(([worker]) => once(worker, 'message'))
    const input = { text: 'x'.repeat(20_000_000) }
    const start = { type: 'run-start', runId: 'run_1', agent: 'a', pipeline: '', threadId: 't', protocol: 'api', input }
    await store.log.append('run_1', 1, [{ seq: 1, timestamp: 1, step: '', ...start }])
    const [{ log, checkpointed }] = await started
    console.log(log > 4000, checkpointed === log)
    clearInterval(awake)
    await store.close()
  `)
  expect(said).toBe('true true\n')
})

/** What a bundle of a door imports from outside of the package. */
async function foreignIn(door: string): Promise<string[]> {
  const target = manifest.exports[door]
  const input = join(installed, typeof target === 'object' ? target.default : target!)
  const external = (id: string) => !id.startsWith('.') && !id.startsWith('/')
  const bundle = await rolldown({ input, platform: 'browser', external, logLevel: 'silent' })
  const { output } = await bundle.generate({ format: 'esm' })
  await bundle.close()
  return output.flatMap((chunk) =>
    chunk.type === 'chunk' ? [...chunk.imports, ...chunk.dynamicImports].filter((name) => !name.endsWith('.js')) : [],
  )
}
