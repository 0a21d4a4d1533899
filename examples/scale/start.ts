/**
 * The fleet of `compose.yaml` without containers: Redis or Valkey, three instances and a balancer, on free ports of this machine.
 *
 *     npx node examples/scale/start.ts [--port 8080] [agents]
 *
 * Ctrl-C ends all of it.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { startBalancer } from './balancer.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: 'string', default: '8080' }, instances: { type: 'string', default: '3' } },
})
const agents = resolve(positionals[0] ?? join(import.meta.dirname, 'agents'))
const command = resolve(import.meta.dirname, '../../bin/millrace.js')
const folder = mkdtempSync(join(tmpdir(), 'millrace-scale-'))
const running = new Map<string, ChildProcess>()

const say = (line: string) => process.stdout.write(`${line}\n`)

async function main(): Promise<void> {
  const redis = ['valkey-server', 'redis-server'].find((name) => spawnSync(name, ['--version']).status === 0)
  if (redis === undefined) throw new Error('This needs redis-server or valkey-server: apt-get install redis-server')
  const port = await freePort()
  const settings = '--bind 127.0.0.1 --appendonly yes --appendfsync everysec --maxmemory 256mb'
  const flags = [...settings.split(' '), '--maxmemory-policy', 'noeviction', '--save', '', '--dir', folder]
  await start(redis, redis, ['--port', String(port), ...flags], /Ready to accept connections/u)
  const store = `redis://127.0.0.1:${port}`
  say(`${redis} at ${store}`)

  const names = Array.from({ length: Number(values.instances) }, (_, i) => `instance ${i + 1}`)
  const urls = await Promise.all(
    names.map(async (name) => {
      const args = [command, 'serve', agents, '--port', '0', '--store', store, '--data', join(folder, name)]
      const ready = await start(name, process.execPath, args, /ready at (http\S+)/u)
      return new URL(ready[1]!)
    }),
  )
  names.forEach((name, i) => say(`${name} at ${urls[i]!.origin}, process ${running.get(name)!.pid}`))
  const { url } = await startBalancer(urls, Number(values.port))
  say(`The fleet is ready at ${url}`)
}

/** Starts a process and waits for a line that it prints. What it prints later is shown with its name. */
async function start(name: string, file: string, args: readonly string[], ready: RegExp): Promise<RegExpExecArray> {
  // A group of its own: Ctrl-C reaches this script alone, which ends the processes in their order.
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  running.set(name, child)
  const found = Promise.withResolvers<RegExpExecArray>()
  let printed = ''
  let isReady = false
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      const match = isReady ? null : ready.exec(line)
      if (match !== null) found.resolve(match)
      if (stream === child.stderr && isReady) say(`${name}: ${line}`)
      printed += `${line}\n`
      isReady ||= match !== null
    })
  }
  child.on('error', found.reject)
  child.on('exit', (code, signal) => {
    running.delete(name)
    found.reject(new Error(`${name} did not start: ${printed}`))
    if (isReady && !stopping) say(`${name} has ended (${signal ?? code})`)
  })
  return found.promise
}

let stopping = false
/** First the instances, which still have something to store; then Redis. */
async function stop(code: number): Promise<void> {
  if (stopping) return
  stopping = true
  const end = async ([, child]: [string, ChildProcess]) => {
    const gone = new Promise((done) => child.once('exit', done))
    child.kill('SIGTERM')
    const enough = setTimeout(() => child.kill('SIGKILL'), 20_000)
    await gone
    clearTimeout(enough)
  }
  const all = [...running]
  await Promise.all(all.filter(([name]) => name.startsWith('instance')).map(end))
  await Promise.all(all.filter(([name]) => !name.startsWith('instance')).map(end))
  rmSync(folder, { recursive: true, force: true })
  process.exit(code)
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => done(port))
    })
  })
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop(0))
main().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  void stop(1)
})
