/** A store that fails: `/health` says so, the log says so once, and both say when it works again. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Report } from '../../src/server/error-guard.ts'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'

const demo = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]'

async function served(data: string) {
  const dir = folder({
    'agents/a.yaml': demo,
    'agents/millrace.config.ts': 'export default { record: { busyTimeoutMs: 0 } }',
  })
  const reports: Report[] = []
  let woken = () => {}
  const report = (each: Report) => {
    reports.push(each)
    woken()
  }
  const env = { MILLRACE_DEMO_DELAY_MS: '0' }
  const { url, close } = await serve({ dir: join(dir, 'agents'), data, port: 0, env, report })
  onTestFinished(close)
  return {
    stores: () => reports.filter(({ event }) => event === 'store'),
    async recovered() {
      while (!reports.some(({ event, level }) => event === 'store' && level === 'info')) {
        await new Promise<void>((resolve) => (woken = resolve))
      }
    },
    reports,
    async ask() {
      const body = JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] })
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(`${url}/api/beddel/chat`, { method: 'POST', headers, body })
      await response.text()
      return response.status
    },
    async health() {
      const response = await fetch(`${url}/health`)
      return [response.status, await response.json()] as const
    },
  }
}

describe('store health', () => {
  test('a database that cannot be written: 503 with a reason, one line, and a recovery', async () => {
    const data = folder()
    const server = await served(data)
    expect(await server.ask()).toBe(200)
    expect(await server.health()).toMatchObject([200, { status: 'ok' }])
    const other = new DatabaseSync(join(data, 'millrace.db'))
    other.exec('BEGIN IMMEDIATE')
    for (let i = 0; i < 3; i++) expect(await server.ask()).toBe(503)
    const [status, body] = await server.health()
    expect([status, body]).toMatchObject([
      503,
      { status: 'degraded', reasons: ['Runs cannot be stored: the database is locked by another process.'] },
    ])
    // `/health` is open to everybody.
    expect(JSON.stringify(body)).not.toContain(data)
    expect(server.stores()).toMatchObject([
      { level: 'error', message: expect.stringContaining('locked'), detail: expect.stringContaining(data) },
    ])
    expect(server.reports.filter(({ event, level }) => event === 'note' && level === 'error')).toEqual([])
    other.exec('ROLLBACK')
    other.close()
    await server.recovered()
    expect(await server.health()).toMatchObject([200, { status: 'ok' }])
    expect(await server.ask()).toBe(200)
    expect(server.stores()).toHaveLength(2)
  })

  const disk = folderOnDisk()
  test.skipIf(disk === undefined)('a real disk that is full (needs the right to mount one)', async () => {
    const server = await served(join(disk!, 'data'))
    expect(await server.ask()).toBe(200)
    const filler = join(disk!, 'filler')
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k'])
    spawnSync('dd', ['if=/dev/zero', `of=${filler}.2`, 'bs=1k'])
    let status = 200
    for (let i = 0; i < 50 && status === 200; i++) status = await server.ask()
    expect(status).toBe(503)
    expect(await server.health()).toMatchObject([503, { reasons: ['Runs cannot be stored: the disk is full.'] }])
    rmSync(filler)
    rmSync(`${filler}.2`)
    await server.recovered()
    expect(await server.ask()).toBe(200)
    expect(await server.health()).toMatchObject([200, { status: 'ok' }])
    expect(server.stores()).toHaveLength(2)
  })
})

/** A file system of a few megabytes; undefined where this account may not mount one. */
function folderOnDisk(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  const dir = join(process.env['TMPDIR'] ?? '/tmp', `millrace-disk-${process.pid}`)
  mkdirSync(dir, { recursive: true })
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', dir]).status !== 0) return undefined
  afterAll(() => {
    spawnSync('umount', ['-l', dir])
    rmSync(dir, { recursive: true, force: true })
  })
  return dir
}
