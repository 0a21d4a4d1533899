/**
 * Makes what an older build leaves behind: `node test/old/make.ts <folder of its sources, built> <name>` writes test/old/data/<name>. README.md says
 * when, and how to build it. It uses the commands and the server of that build only.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { writeKeys } from './redis-keys.ts'

const [from, name] = process.argv.slice(2)
if (from === undefined || name === undefined) throw new Error('usage: node test/old/make.ts <built sources> <name>')
const build = resolve(from)
const data = resolve(import.meta.dirname, 'data', name)
const hasCommand = (command: string) => existsSync(join(build, `src/cli/commands/${command}.ts`))

const started: ChildProcess[] = []
const work = mkdtempSync(join(tmpdir(), 'millrace-old-'))
try {
  rmSync(data, { recursive: true, force: true })
  mkdirSync(join(data, 'agents'), { recursive: true })
  for (const agent of ['assistant', 'approve-first'])
    cpSync(join(build, `agents/${agent}.yaml`), join(data, `agents/${agent}.yaml`))
  writeFileSync(
    join(data, 'agents/fails.yaml'),
    'workflow: [{ id: answer, type: llm, config: { model: "openai:none", stream: true } }]\n',
  )
  await makeFolder()
  if (existsSync(join(build, 'src/store/redis'))) await makeRedis()
} finally {
  for (const child of started) await stopped(child)
  rmSync(work, { recursive: true, force: true })
}

async function makeFolder(): Promise<void> {
  const cwd = join(work, 'folder')
  cpSync(join(data, 'agents'), join(cwd, 'agents'), { recursive: true })
  // The approval must be open on the day of the test.
  writeFileSync(join(cwd, 'agents/millrace.config.mjs'), 'export default { requestDeadlineMs: 3e11 }\n')
  await record(cwd, 'folder', [])
  const file = join(cwd, '.millrace/millrace.db')
  const db = new DatabaseSync(file)
  // What is in the WAL belongs to it.
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  writeFileSync(join(data, 'millrace.db.gz'), gzipSync(readFileSync(file), { level: 9 }))
}

/** One run is in the archive; the others are in Redis. */
async function makeRedis(): Promise<void> {
  const cwd = join(work, 'redis')
  cpSync(join(data, 'agents'), join(cwd, 'agents'), { recursive: true })
  const config = (record: string) =>
    writeFileSync(
      join(cwd, 'agents/millrace.config.mjs'),
      `export default { requestDeadlineMs: 3e11, record: { archive: './archive', compactAfter: 'never', ${record} } }\n`,
    )
  const port = await freePort()
  const url = `redis://127.0.0.1:${port}`
  const redis = spawn('redis-server', ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--dir', work])
  started.push(redis)
  await until(async () => String(redis.stdout.read() ?? '').includes('Ready to accept') || undefined)
  config(`archiveAfter: 100`)
  const store = ['--store', url]
  await record(cwd, 'redis', store, async () => {
    await until(async () => readdirSync(cwd).includes('archive') && readdirSync(join(cwd, 'archive')).length > 1)
    config(`archiveAfter: 'never'`)
  })
  execFileSync('tar', ['czf', join(data, 'archive.tar.gz'), '-C', cwd, 'archive'])
  writeFileSync(join(data, 'redis.gz'), gzipSync(await writeKeys(url), { level: 9 }))
}

/** `next`: when the first run has ended; a server is then started anew. */
async function record(cwd: string, place: string, store: string[], next?: () => Promise<void>): Promise<void> {
  let server = await serve(cwd, store)
  const talk = async (agentId: string, thread: string, text: string): Promise<string> => {
    const messages = [{ id: `m${text.length}`, role: 'user', parts: [{ type: 'text', text }] }]
    const response = await fetch(`${server.url}/api/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agentId, id: thread, messages }),
    })
    await response.text()
    return response.headers.get('x-millrace-run-id') ?? (await newest(server.url))
  }
  const ids: Record<string, string> = { thread: 'talk' }
  ids['told'] = await talk('assistant', 'talk', 'What is 12*7? Say a word about blue whales.')
  if (next !== undefined) {
    await next()
    await stopped(server.child)
    server = await serve(cwd, store)
  }
  ids['more'] = await talk('assistant', 'talk', 'And in words?')
  ids['failed'] = await talk('fails', 'other', 'This fails.')
  if (hasCommand('fork')) {
    // A fork does not begin when its source does.
    await sleep(3000)
    const forked = await fetch(`${server.url}/api/runs/${ids['told']}/fork`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ at: 1, input: { messages: [{ role: 'user', content: 'And 7*7?' }] } }),
    })
    ids['forked'] = ((await forked.json()) as { id: string }).id
    await until(async () => (await statusOf(server.url, ids['forked']!)) === 'completed' || undefined)
  }
  ids['waits'] = await talk('approve-first', 'asked', 'What is 12*7?')
  await until(async () => (await statusOf(server.url, ids['waits']!)) === 'suspended' || undefined)
  await stopped(server.child)
  mkdirSync(join(data, place))
  writeFileSync(join(data, place, 'ids.json'), `${JSON.stringify(ids)}\n`)
  for (const [what, run] of Object.entries(ids)) {
    if (what === 'thread') continue
    const told = hasCommand('export') ? ['export', run] : ['logs', run, '--json']
    writeFileSync(join(data, place, `${what}.ndjson`), millrace(cwd, [...told, ...store]))
  }
}

function environment(cwd: string) {
  return { ...process.env, MILLRACE_DEMO_DELAY_MS: '0', MILLRACE_ARCHIVE: join(cwd, 'archive'), OPENAI_API_KEY: '' }
}

function millrace(cwd: string, args: string[]): string {
  const command = [join(build, 'bin/millrace.js'), ...args]
  return execFileSync(join(build, 'node_modules/.bin/node'), command, { cwd, env: environment(cwd), encoding: 'utf8' })
}

async function serve(cwd: string, store: string[]): Promise<{ url: string; child: ChildProcess }> {
  const command = [join(build, 'bin/millrace.js'), 'serve', 'agents', '--port', String(await freePort()), ...store]
  const child = spawn(join(build, 'node_modules/.bin/node'), command, { cwd, env: environment(cwd) })
  started.push(child)
  child.stderr.pipe(process.stderr)
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  const url = await until(async () => /is ready at (http:\S+)/u.exec(said)?.[1])
  return { url: url.replace(/\/$/u, ''), child }
}

async function newest(url: string): Promise<string> {
  const { runs } = (await (await fetch(`${url}/api/runs?limit=1`)).json()) as { runs: { id: string }[] }
  return runs[0]!.id
}

async function statusOf(url: string, run: string): Promise<string> {
  return ((await (await fetch(`${url}/api/runs/${run}`)).json()) as { status: string }).status
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolveIt) => void child.once('exit', resolveIt))
  child.kill('SIGTERM')
  await gone
}

async function until<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  for (let tries = 0; tries < 300; tries++) {
    const found = await ask()
    if (found !== undefined && found !== false) return found
    await sleep(200)
  }
  throw new Error('This took more than a minute.')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolveIt) => void server.once('listening', resolveIt))
  const { port } = server.address() as AddressInfo
  await new Promise((resolveIt) => void server.close(resolveIt))
  return port
}
