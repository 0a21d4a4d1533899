/**
 * Redis servers for tests: each on 127.0.0.1 with a port and a folder of its own, and gone with the process that started it, even when that is killed.
 * The program is `redis-server` or `valkey-server`, or what `REDIS_SERVER` names.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type TestCertificates, writeTestCertificates } from './test-certificates.ts'

export interface RedisServer {
  /** `redis://127.0.0.1:<port>` */
  url: string
  port: number
  /** Where it speaks TLS, as `localhost`, if it was started with `tls`. */
  tlsPort: number
  /** Where its append-only file is. */
  dir: string
  /** A command over a connection of its own; the reply as it comes over the wire. Throws what Redis refuses. */
  command(...args: string[]): Promise<string>
  /** SIGKILL. What it had written to its append-only file stays, flushed or not. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay, nothing is answered. */
  freeze(): void
  thaw(): void
  /** Kills it if it runs, and starts it with the same port and folder. */
  restart(): Promise<void>
  close(): Promise<void>
}

export interface RedisCluster {
  /** The first node's. */
  url: string
  /** Three primaries, then the replicas: of the first primary, of the second one … */
  nodes: RedisServer[]
  close(): Promise<void>
}

export interface RedisOptions {
  /** An append-only file, flushed each second: `restart` finds it again. */
  aof?: boolean
  /** A second port with TLS; `mutual`: clients need a certificate. */
  tls?: 'server' | 'mutual'
  flags?: string[]
}

const folders = (process.env.PATH ?? '').split(delimiter)
const find = (name: string) => folders.map((dir) => join(dir, name)).find((path) => existsSync(path))
const named = process.env.REDIS_SERVER
const program = named === undefined ? (find('redis-server') ?? find('valkey-server')) : (find(named) ?? named)

export const hasRedis = program !== undefined

/** Added to the names of tests that cannot run here. */
export const redisFault = hasRedis ? '' : ' (needs redis-server)'

export async function startRedis({ aof = false, tls, flags = [] }: RedisOptions = {}): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-redis-'))
  const log = ['--loglevel', 'warning', '--appendonly', aof ? 'yes' : 'no', '--appendfsync', 'everysec', '--save', '']
  const tlsPort = tls === undefined ? 0 : await freePort()
  const more = [...flags, ...(tls === undefined ? [] : tlsFlags(writeTestCertificates(dir), tlsPort, tls === 'mutual'))]
  const start = (port: number) =>
    launch(port, dir, ['--bind', '127.0.0.1', '--port', String(port), '--dir', dir, ...log, ...more])
  let port = await freePort()
  let running: Launched | undefined
  // Somebody else may have taken the port in the meantime.
  for (let attempt = 0; running === undefined; attempt++) {
    try {
      running = await start(port)
    } catch (error) {
      if (attempt === 3) throw error
      port = await freePort()
    }
  }
  async function kill(): Promise<void> {
    const killed = running
    running = undefined
    await killed?.kill()
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    tlsPort,
    dir,
    command: (...args) => command(port, args),
    kill,
    freeze: () => void process.kill(running!.pid, 'SIGSTOP'),
    thaw: () => void process.kill(running!.pid, 'SIGCONT'),
    async restart() {
      await kill()
      running = await start(port)
    },
    async close() {
      await kill()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function tlsFlags({ ca, serverCert, serverKey }: TestCertificates, port: number, isMutual: boolean): string[] {
  const files = ['--tls-ca-cert-file', ca, '--tls-cert-file', serverCert, '--tls-key-file', serverKey]
  return ['--tls-port', String(port), ...files, '--tls-auth-clients', isMutual ? 'yes' : 'no']
}

/** `nodeTimeout`: when a node that does not answer has failed, in ms. */
export async function startRedisCluster({ replicas = 0, nodeTimeout = 5000 } = {}): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: 3 + replicas }, async () => {
      const bus = await freePort()
      const timeout = ['--cluster-node-timeout', String(nodeTimeout)]
      const flags = ['--cluster-enabled', 'yes', '--cluster-port', String(bus), ...timeout]
      return { bus, node: await startRedis({ flags }) }
    }),
  )
  const primaries = nodes.slice(0, 3)
  for (const [i, { node }] of primaries.entries()) {
    const [first, last] = [Math.ceil((16384 * i) / 3), Math.ceil((16384 * (i + 1)) / 3) - 1]
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(first), String(last))
    await node.command('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1))
  }
  const [first, ...others] = nodes as [(typeof nodes)[0], ...typeof nodes]
  for (const { node, bus } of others)
    await first.node.command('CLUSTER', 'MEET', '127.0.0.1', String(node.port), String(bus))
  for (const [i, { node }] of nodes.slice(3).entries()) {
    const id = (await primaries[i]!.node.command('CLUSTER', 'MYID')).split('\r\n')[1]!
    await until(`the primary of port ${node.port}`, async () => (await node.command('CLUSTER', 'NODES')).includes(id))
    await node.command('CLUSTER', 'REPLICATE', id)
    await until(`the replica at port ${node.port}`, async () =>
      (await node.command('INFO', 'replication')).includes('master_link_status:up'),
    )
  }
  for (const { node } of nodes) {
    await until(`the cluster of port ${node.port}`, async () => {
      const info = await node.command('CLUSTER', 'INFO')
      return info.includes('cluster_state:ok') && info.includes('cluster_size:3')
    })
  }
  return {
    url: first.node.url,
    nodes: nodes.map(({ node }) => node),
    close: async () => void (await Promise.all(nodes.map(({ node }) => node.close()))),
  }
}

interface Launched {
  pid: number
  kill(): Promise<void>
}

/** A shell stands between: it kills the server when our end of its input closes, as it does however we end. Then nobody else removes the folder either. */
const guard =
  'dir=$1; shift; "$@" >&2 & echo $!; exec 2>/dev/null; read -r word || rm=rm; kill -9 $!; wait $!; ${rm:+rm -rf "$dir"}'

async function launch(port: number, dir: string, args: string[]): Promise<Launched> {
  const shell = spawn('sh', ['-c', guard, 'sh', dir, program!, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  const gone = new Promise<void>((resolve) => shell.once('exit', () => resolve()))
  let said = ''
  shell.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)))
  const pid = await firstLine(shell)
  for (const each of [shell, shell.stdin, shell.stdout, shell.stderr]) (each as ChildProcess).unref()
  try {
    await until(`redis-server on port ${port}`, async () => {
      process.kill(pid, 0)
      return (await command(port, ['PING'])) === '+PONG'
    })
  } catch (error) {
    shell.stdin.end('end\n')
    throw new Error(`${(error as Error).message}: ${said}`, { cause: error })
  }
  return {
    pid,
    async kill() {
      shell.ref()
      shell.stdin.end('end\n')
      await gone
    },
  }
}

async function firstLine(shell: ChildProcess): Promise<number> {
  for await (const chunk of shell.stdout!) return Number(String(chunk))
  throw new Error('The shell that starts redis-server has ended.')
}

async function until(what: string, isTrue: () => Promise<boolean>): Promise<void> {
  let fault: unknown
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(10)) {
    try {
      if (await isTrue()) return
    } catch (error) {
      fault = error
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') break
    }
  }
  throw new Error(`${what} never answered`, { cause: fault })
}

function command(port: number, args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let reply = ''
    const socket = connect(port, '127.0.0.1', () => {
      const parts = args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`)
      socket.write(`*${args.length}\r\n${parts.join('')}*1\r\n$4\r\nQUIT\r\n`)
    })
    socket.setEncoding('utf8').on('data', (text: string) => (reply += text))
    socket.on('error', reject).on('close', () => {
      // What QUIT says stands last.
      const own = reply.replace(/\+OK\r\n$/u, '').replace(/\r\n$/u, '')
      if (own.startsWith('-')) reject(new Error(own.slice(1)))
      else resolve(own)
    })
  })
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
