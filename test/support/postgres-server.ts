/**
 * A Postgres server for tests and benchmarks, on 127.0.0.1 with a port and a folder of its own, and gone with the process that started it. Its programs
 * refuse to run as root: then they run as the user `postgres`, as Debian's package has it.
 */
import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './redis-server.ts'
import { writeTestCertificates } from './test-certificates.ts'

export interface PostgresServer {
  port: number
  /** Of the user `ada`, whose password is `s3cret/word`, in a database of its own each time. */
  freshUrl(): Promise<string>
  /** The file of the authority of its certificate, which is that of `localhost`. */
  ca: string
  /** What `psql` prints. */
  sql(text: string, database?: string): string
  close(): Promise<void>
}

const debian = '/usr/lib/postgresql'
const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
const folders = [...(process.env.PATH ?? '').split(delimiter), ...versions.map((each) => join(debian, each, 'bin'))]
const bin = folders.find((dir) => ['initdb', 'postgres', 'psql'].every((name) => existsSync(join(dir, name))))
const isRoot = process.getuid?.() === 0

/** Added to the names of tests that cannot run here. */
export const postgresFault = bin === undefined ? ' (needs postgresql)' : hasPackage() ? '' : ' (needs the package pg)'

function hasPackage(): boolean {
  try {
    return createRequire(import.meta.url).resolve('pg') !== ''
  } catch {
    return false
  }
}

/** A shell stands between: it ends the server when our end of its input closes, as it does however we end. */
const guard = 'dir=$1; shift; "$@" >&2 & echo $!; exec 2>/dev/null; read -r word; kill -QUIT $!; wait $!; rm -rf "$dir"'

/** `fsync`: whether a commit waits for the disk. */
export async function startPostgres({ fsync = false } = {}): Promise<PostgresServer> {
  // A folder of root's own is closed to the other user.
  const dir = mkdtempSync(join(isRoot ? '/tmp' : tmpdir(), 'millrace-postgres-'))
  const data = join(dir, 'data')
  mkdirSync(data, { mode: 0o700 })
  const { ca, serverCert, serverKey } = writeTestCertificates(dir)
  chmodSync(serverKey, 0o600)
  const user = isRoot ? ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups'] : []
  if (isRoot) execFileSync('chown', ['-R', 'postgres', dir])
  chmodSync(dir, 0o755)
  const run = (name: string, ...args: string[]): string => {
    const [command, ...rest] = [...user, join(bin!, name), ...args] as [string, ...string[]]
    return execFileSync(command, rest, { cwd: dir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  }
  run(
    'initdb',
    '-D',
    data,
    '-U',
    'admin',
    '-E',
    'UTF8',
    '--locale=C',
    '-N',
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
  )
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: dir,
    fsync: fsync ? 'on' : 'off',
    ssl: 'on',
    ssl_cert_file: serverCert,
    ssl_key_file: serverKey,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const shell = spawn('sh', ['-c', guard, 'sh', dir, ...user, join(bin!, 'postgres'), '-D', data, ...flags], {
    cwd: dir,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let said = ''
  shell.stderr.setEncoding('utf8').on('data', (text: string) => (said = (said + text).slice(-2000)))
  const gone = new Promise<void>((resolve) => shell.once('exit', () => resolve()))
  const sql = (text: string, database = 'postgres') =>
    run('psql', '-h', dir, '-p', String(port), '-U', 'admin', '-d', database, '-XAtq', '-c', text).trim()
  for (let tries = 0; ; tries++) {
    try {
      sql("CREATE ROLE ada LOGIN PASSWORD 's3cret/word'")
      break
    } catch (error) {
      if (tries > 300) throw new Error(`postgres never answered: ${said}`, { cause: error })
      await sleep(50)
    }
  }
  for (const each of [shell, shell.stdin, shell.stdout, shell.stderr]) (each as typeof shell).unref()
  let databases = 0
  return {
    port,
    ca,
    sql,
    async freshUrl() {
      const name = `d${++databases}`
      sql(`CREATE DATABASE ${name} OWNER ada`)
      return `postgres://ada:s3cret%2Fword@127.0.0.1:${port}/${name}`
    },
    async close() {
      shell.ref()
      shell.stdin.end('end\n')
      await gone
    },
  }
}
