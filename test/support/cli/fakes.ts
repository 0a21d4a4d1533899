/** Fake `claude`, `codex`, `gemini` and `qwen` on a PATH, latches for them, and the process table. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

export interface Fakes {
  /** The folder of the programs, and of what they report. */
  dir: string
  environment: Record<string, string>
  /** What every start reported, in order. */
  reports(): Report[]
  /** A `cli-agent` agent that plays this mode. */
  agent(options?: FakeAgent): string
}

export interface Report {
  pid: number
  argv: string[]
  env: Record<string, string>
  cwd: string
  stdin: string
}

interface FakeAgent {
  cli?: string
  mode?: string
  session?: string
  latch?: string
  /** Further lines of `config`. */
  config?: string
  /** Lines before `workflow`. */
  top?: string
  /** Lines after the step. */
  after?: string
}

export function installFakes(): Fakes {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-cli-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFakes(dir)
  const report = join(dir, 'report.ndjson')
  return {
    dir,
    environment: { PATH: `${dir}:${process.env['PATH']}`, HOME: dir },
    reports: () =>
      existsSync(report)
        ? readFileSync(report, 'utf8')
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as Report)
        : [],
    agent({ cli = 'claude', mode = 'normal', session, latch, config = '', top = '', after = '' } = {}) {
      const args = [`--mode=${mode}`, `--report=${report}`]
      if (session !== undefined) args.push(`--session=${session}`)
      if (latch !== undefined) args.push(`--latch=${latch}`)
      return `${top}
workflow:
  - id: code
    type: cli-agent
    config:
      cli: ${cli}
      cwd: ${JSON.stringify(dir)}
      args: ${JSON.stringify(args)}
${config.replaceAll(/^/gmu, '      ')}
    result: done
${after}
`
    },
  }
}

/** The programs, in a folder. */
export function writeFakes(dir: string): void {
  for (const name of ['claude', 'codex', 'gemini', 'qwen']) {
    const file = join(dir, name)
    const script = join(import.meta.dirname, 'fake-cli.ts')
    writeFileSync(file, `#!${process.execPath}\nprocess.env.FAKE_NAME = '${name}'\nimport(${JSON.stringify(script)})\n`)
    chmodSync(file, 0o755)
  }
}

export interface Latch {
  url: string
  /** Resolves when a fake waits at this place. */
  reached(at: number | string): Promise<void>
  /** Lets it go on from here. */
  open(at: number | string): Promise<void>
  /** Lets everything pass from now on. */
  openAll(): void
}

export async function startLatch(): Promise<Latch> {
  const waiting = new Map<string, ServerResponse>()
  let isOpen = false
  let wake = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    if (isOpen) return void response.end()
    waiting.set(request.url!.slice(1), response)
    wake.resolve()
    wake = Promise.withResolvers()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  async function reached(at: number | string): Promise<void> {
    while (!waiting.has(String(at))) await wake.promise
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reached,
    async open(at) {
      await reached(at)
      waiting.get(String(at))!.end()
    },
    openAll() {
      isOpen = true
      for (const response of waiting.values()) response.end()
    },
  }
}

/** The living processes (no zombies) that have this text in their command line or in their environment, this one excepted. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const state = readFileSync(`/proc/${pid}/stat`, 'latin1')
        if (/\) Z /u.test(state)) return false
        return ['cmdline', 'environ'].some((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(text))
      } catch {
        return false
      }
    })
    .map(Number)
}

/** Resolves when no process has this text. Bounded by the test's own time. */
export async function untilGone(text: string): Promise<void> {
  while (processesWith(text).length > 0) await new Promise((resolve) => setTimeout(resolve, 10))
}

export const hasProcessTable = existsSync('/proc/self/environ')
