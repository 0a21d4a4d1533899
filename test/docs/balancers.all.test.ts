/** The configurations of load balancers in docs/scale.md, and in examples/scale: the real programs take them, and do what the page says. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { load } from 'js-yaml'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/redis-server.ts'
import { snippetsIn } from './documents.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-balancers-'))
chmodSync(dir, 0o755)
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const blocks = snippetsIn('nginx', 'text').filter(({ place }) => place.startsWith('docs/scale.md'))
const blockOf = (part: string) => blocks.find(({ text }) => text.includes(part))!.text
const compose = load(readFileSync('examples/scale/compose.yaml', 'utf8')) as {
  configs: { haproxy: { content: string } }
}

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
const find = (name: string) => folders.map((folder) => join(folder, name)).find((path) => existsSync(path))

interface Balancer {
  program: string
  /** The configuration as the page has it; nginx must write nowhere else. */
  text: string
  /** A word of it that every version knows. */
  word: string
  /** Arguments to look at a file, and to run with it. */
  checks(file: string): string[]
  runs(file: string): string[]
  /** The same with two instances of this machine. */
  local(text: string, port: number, instances: number[]): string
}

/** Its workers may write to our folder only as we do. */
const user = process.getuid?.() === 0 ? 'user root; ' : ''

const balancers: Balancer[] = [
  {
    program: 'haproxy',
    text: compose.configs.haproxy.content,
    word: 'default_backend',
    checks: (file) => ['-c', '-f', file],
    runs: (file) => ['-f', file],
    local: (text, port, instances) =>
      text
        .replace('bind :8080', `bind 127.0.0.1:${port}`)
        .replace('maxconn 20000', 'maxconn 100')
        .replaceAll(' resolvers docker init-addr none', '')
        .replaceAll(
          'server-template millrace 10 millrace:3000',
          instances.map((each) => `server s${each} 127.0.0.1:${each}`).join('\n  '),
        ),
  },
  {
    program: 'nginx',
    text: blockOf('proxy_next_upstream').replace(
      'http {',
      ['http {', 'access_log off;', ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(tempPath)].join('\n'),
    ),
    word: 'proxy_buffering',
    checks: (file) => ['-t', '-c', file, '-g', `pid ${dir}/nginx.pid; error_log stderr;`],
    runs: (file) => ['-c', file, '-g', `daemon off; ${user}pid ${dir}/nginx.pid; error_log stderr;`],
    local: (text, port, [first, second]) =>
      text
        .replace('listen 8080', `listen 127.0.0.1:${port}`)
        .replaceAll('10.0.0.1:3000', `127.0.0.1:${first}`)
        .replaceAll('10.0.0.2:3000', `127.0.0.1:${second}`)
        .replaceAll(/^ *server 10\.0\.0\.3.*$/gmu, ''),
  },
  {
    program: 'caddy',
    text: blockOf('reverse_proxy'),
    word: 'lb_policy',
    checks: (file) => ['validate', '--adapter', 'caddyfile', '--config', file],
    runs: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    local: (text) => text,
  },
]

function tempPath(name: string): string {
  return `${name}_temp_path ${dir}/${name};`
}

function write(program: string, text: string): string {
  const file = join(dir, `${program}-${crypto.randomUUID()}.cfg`)
  writeFileSync(file, text)
  return file
}

const env = { ...process.env, HOME: dir, XDG_DATA_HOME: dir, XDG_CONFIG_HOME: dir }

/** Added to the names of tests that cannot run here. */
const needs = (program: string) => (find(program) === undefined ? ` (needs ${program})` : '')

describe.each(balancers.map((each) => ({ ...each, name: each.program + needs(each.program) })))('$name', (balancer) => {
  const { program, text, word, checks, runs, local } = balancer
  const path = find(program)

  test.skipIf(path === undefined)('takes the configuration that the docs give', () => {
    const check = (config: string) => {
      const { status, stdout, stderr } = spawnSync(path!, checks(write(program, config)), { encoding: 'utf8', env })
      return { status, said: stdout + stderr }
    }
    const { status, said } = check(text)
    expect([status, said]).toEqual([0, expect.not.stringMatching(/\b(?:warning|deprecated)\b/iu)])
    expect(check(text.replace(word, `${word}_not`)).status).not.toBe(0)
  })

  // Caddy hands a 503 to the client, as the page says.
  if (program === 'caddy') return
  test.skipIf(path === undefined)(
    'asks another instance what one refuses with a 503, the body of a POST included',
    async () => {
      let refused = 0
      const refusing = await listen((path) => (path === '/health' ? 200 : (refused++, 503)))
      const taking = await listen(() => 200)
      const port = await freePort()
      const said: string[] = []
      const child = spawn(path!, runs(write(program, local(text, port, [refusing, taking]))), { env })
      const gone = new Promise((resolve) => child.once('exit', resolve))
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (line) => said.push(line))
      onTestFinished(async () => {
        child.kill()
        await gone
      })
      for (const end = Date.now() + 20_000; !(await answers(port)); await sleep(50))
        if (Date.now() > end || child.exitCode !== null) throw new Error(`${program} does not answer: ${said.join('')}`)
      // As it comes over a network: the head, then the body, in one piece or two.
      for (const pieces of [['x'.repeat(100)], ['x'.repeat(7000), 'y'.repeat(5000)]]) {
        const before = refused
        for (let tries = 0; refused === before; tries++) {
          if (tries === 100) throw new Error('the instance that refuses was never asked')
          expect(await post(port, pieces)).toMatch(/^HTTP\/1\.1 200 /u)
          // nginx leaves out for two seconds who refused.
          if (refused === before) await sleep(100)
        }
      }
    },
  )
})

/** An instance that answers with a status, after it has read the request. */
async function listen(statusOf: (path: string) => number): Promise<number> {
  const server = createServer((request, response) => {
    const status = statusOf(request.url!)
    request.resume().on('end', () => response.writeHead(status, { 'retry-after': '1' }).end('said'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

async function answers(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/api/agents`).then(
    ({ status }) => status === 200,
    () => false,
  )
}

/** The response to a POST whose body is written after its head, piece by piece. */
function post(port: number, pieces: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    const socket = connect(port, '127.0.0.1')
    const parts = [
      `POST /api/runs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n`,
      ...pieces,
    ]
    const next = () => {
      const part = parts.shift()
      if (part === undefined) return
      // The next one is another packet.
      socket.write(part, () => setImmediate(next))
    }
    socket.setNoDelay(true).on('connect', next).on('error', reject)
    socket
      .setEncoding('utf8')
      .on('data', (chunk: string) => (text += chunk))
      .on('close', () => resolve(text))
  })
}
