/**
 * The processes of CLI agents when their server is killed or stopped. The server is a process of its own, and the process table says
 * what is left.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder } from '../support/cli.ts'
import { millrace, ran, serving } from '../support/cli-process.ts'
import { hasProcessTable, installFakes, processesWith, startLatch, untilGone } from '../support/cli/fakes.ts'

interface Started {
  data: string
  fakes: ReturnType<typeof installFakes>
  args: string[]
  options: { env: Record<string, string> }
  server: Awaited<ReturnType<typeof serving>>
  id: string
}

/** A server whose CLI agent is in the middle of its answer. */
async function inMidAnswer(mode: string, top = ''): Promise<Started> {
  const fakes = installFakes()
  const latch = await startLatch()
  const dir = folder({ 'coder.yaml': fakes.agent({ mode, latch: latch.url, top }) })
  const data = join(folder(), 'data')
  const options = { env: { ...fakes.environment, HOME: process.env['HOME'] ?? '/' } }
  const args = [dir, '--data', data]
  const server = await serving(args, options)
  const answer = await fetch(`${server.url}/api/runs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agentId: 'coder', input: { messages: [{ role: 'user', content: 'Go' }] } }),
  })
  const { id } = (await answer.json()) as { id: string }
  for (let i = 0; i < 5; i++) await latch.open(i)
  await latch.reached('silent')
  return { data, fakes, args, options, server, id }
}

/** Of the fakes: without the server itself, which has their folder in its PATH. */
const left = ({ fakes, server }: Started) => processesWith(fakes.dir).filter((pid) => pid !== server.pid)

describe('orphaned CLI processes', () => {
  test.skipIf(!hasProcessTable).each(['ignore-term', 'grandchild', 'far-grandchild'])(
    'kill -9 of the server, and a restart: no process of %s is left, and the run is interrupted',
    { timeout: 60_000 },
    async (mode) => {
      const started = await inMidAnswer(mode)
      const { server, fakes, args, options, data, id } = started
      expect(left(started)).toHaveLength(mode === 'ignore-term' ? 1 : 2)
      server.kill('SIGKILL')
      await server.exit
      expect(left(started)).toHaveLength(mode === 'ignore-term' ? 1 : 2)
      const next = await serving(args, options)
      expect(next.out + next.err).toContain('of CLI agents')
      expect(processesWith(fakes.dir).filter((pid) => pid !== next.pid)).toEqual([])
      expect(readdirSync(join(data, 'processes'))).toEqual([])
      const run = (await (await fetch(`${next.url}/api/runs/${id}`)).json()) as { status: string }
      expect(run.status).toBe('interrupted')
    },
  )

  test.skipIf(!hasProcessTable).each(['silent', 'far-grandchild'])(
    'SIGTERM of the server: %s ends with it, within its grace time',
    { timeout: 60_000 },
    async (mode) => {
      const started = await inMidAnswer(mode)
      const { server, fakes, data } = started
      const since = performance.now()
      server.kill('SIGTERM')
      expect(await server.exit).toBe(0)
      // The grace time of runs is 2 s by default.
      expect(performance.now() - since).toBeLessThan(10_000)
      await untilGone(fakes.dir)
      expect(readdirSync(join(data, 'processes'))).toEqual([])
    },
  )

  test.skipIf(!hasProcessTable)(
    'a process id that was given to somebody else is left alone, and so is a broken record',
    async () => {
      const data = join(folder(), 'data')
      const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], {
        stdio: 'ignore',
        detached: true,
      })
      onTestFinished(() => void stranger.kill('SIGKILL'))
      mkdirSync(join(data, 'processes'), { recursive: true })
      const record = { pid: stranger.pid, start: 'another boot 1', mark: 'no-such-mark', run: 'r', step: 's' }
      writeFileSync(join(data, 'processes/a.json'), JSON.stringify(record))
      writeFileSync(join(data, 'processes/b.json'), JSON.stringify({ ...record, start: undefined }))
      writeFileSync(join(data, 'processes/c.json'), '{"pid": 1, "start"')
      writeFileSync(join(data, 'processes/d.json'), JSON.stringify({ ...record, pid: 0 }))
      const server = await serving(['agents', '--data', data])
      expect(server.out + server.err).not.toContain('of CLI agents')
      expect(readdirSync(join(data, 'processes'))).toEqual([])
      expect(stranger.exitCode).toBeNull()
      expect(stranger.signalCode).toBeNull()
    },
  )

  test.skipIf(!hasProcessTable)(
    'Ctrl-C of `millrace run` leaves no process',
    async () => {
      const fakes = installFakes()
      const latch = await startLatch()
      const dir = folder({ 'coder.yaml': fakes.agent({ mode: 'far-grandchild', latch: latch.url }) })
      const options = { env: { ...fakes.environment, HOME: process.env['HOME'] ?? '/' } }
      const command = millrace(['run', 'coder', '-m', 'Go', '--dir', dir, '--data', join(folder(), 'data')], options)
      for (let i = 0; i < 5; i++) await latch.open(i)
      await latch.reached('silent')
      command.kill('SIGINT')
      expect(await command.exit).toBe(130)
      await untilGone(fakes.dir)
    },
    30_000,
  )

  test('a folder that another server holds is not touched', async () => {
    const started = await inMidAnswer('silent')
    const { args, options, data } = started
    const second = await ran(['serve', ...args, '--port', '0'], options)
    expect(second.code).not.toBe(0)
    expect(readdirSync(join(data, 'processes'))).toHaveLength(1)
    if (hasProcessTable) expect(left(started)).toHaveLength(1)
  }, 60_000)
})
