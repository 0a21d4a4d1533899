/** `show`, `logs` and `ps --user`: who started a run, and who answered it. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import type { Reply } from '../../src/part/request-part.ts'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { agent, createEngine, until } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'

/** A data folder with a run that Ada started, and whose payment Olga approved. */
async function recorded(): Promise<{ cwd: string; id: string }> {
  const cwd = folder({ 'agents/a.yaml': agent().replace('script:m', 'demo:assistant'), '.millrace/.keep': '' })
  const model = createTold((prompt) =>
    resultsIn(prompt).size === 0 ? [toolCall('c', 'pay', {}), finish('tool-calls')] : [text('Done.'), finish()],
  )
  const engine = createEngine({
    agents: { a: agent('tools: [{ name: pay, approval: { roles: [operator] } }]') },
    tools: { pay: { parameters: { type: 'object' }, execute: () => 'paid' } },
    scripts: { m: model },
    dir: join(cwd, '.millrace'),
    keep: true,
  })
  const user = { id: 'u1', tenant: 'acme', name: 'Ada', roles: ['user' as const], claims: { plan: 'pro' } }
  const run = await engine.runtime.start('a', { messages: [{ role: 'user', content: 'Pay' }] }, { user })
  await run.result
  const suspend = await until(engine.store, run.id, ({ type }) => type === 'suspend')
  const [requestId] = (suspend as { requests: string[] }).requests
  const yes: Reply = { kind: 'approval', approved: true }
  await engine.runtime.answer(run.id, requestId!, yes, { by: { id: 'op-7', name: 'Olga' }, roles: ['operator'] })
  await until(engine.store, run.id, ({ type }) => type === 'run-end')
  await engine.close()
  return { cwd, id: run.id }
}

describe('who started a run, and who answered', () => {
  test('show and logs name both, from the database and from a server', async () => {
    const { cwd, id } = await recorded()
    async function check() {
      const shown = await ran(['show', id], { cwd })
      expect([shown.code, shown.err]).toEqual([0, ''])
      expect(shown.out).toMatch(/^started by {2}Ada \(acme\/u1\)$/mu)
      expect(shown.out).toMatch(/^Answers\npay {2}approved by Olga \(op-7\), \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/mu)
      const json = JSON.parse((await ran(['show', id, '--json', '--full'], { cwd })).out) as Record<string, unknown>
      // Claims and roles are in the log.
      expect(json['user']).toEqual({ id: 'u1', tenant: 'acme', name: 'Ada' })
      expect(json['answers']).toMatchObject([{ toolName: 'pay', answer: 'approved', by: { id: 'op-7', name: 'Olga' } }])
      const log = (await ran(['logs', id], { cwd })).out.split('\n')
      const line = (type: string) => log.find((each) => each.split(/\s+/u)[3] === type)
      expect(line('run-start')).toMatch(/ by Ada \(acme\/u1\) {2}\{"runId"/u)
      expect(line('response')).toMatch(/ by Olga \(op-7\) {2}\{"requestId"/u)
      expect(line('request')).not.toContain(' by ')
    }
    await check()
    await serving([], { cwd })
    await check()
  })

  test('ps --user lists the runs of one user, or of no one, from the database and from a server', async () => {
    const { cwd, id } = await recorded()
    async function check() {
      const listed = async (user: string) => {
        const { out } = await ran(['ps', '--json', '--user', user], { cwd })
        return (JSON.parse(out) as RunRow[]).map((row) => row.id)
      }
      expect(await listed('u1')).toEqual([id])
      expect(await listed('u2')).toEqual([])
      expect(await listed('')).toEqual([])
    }
    await check()
    await serving([], { cwd })
    await check()
  })

  test('a run of no one has neither', async () => {
    const cwd = folder({ 'agents/a.yaml': 'workflow: [{ id: s, type: output-generator, config: { template: 1 } }]' })
    await ran(['run', 'a', '-m', 'Hi'], { cwd })
    const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
    const shown = (await ran(['show', id], { cwd })).out
    expect(shown).not.toContain('started by')
    expect(shown).not.toContain('Answers')
    expect((await ran(['logs', id], { cwd })).out).not.toContain(' by ')
  })
})

describe('ps --user', () => {
  test('asks the server for the runs of this user', async () => {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(request.url!)
      response.setHeader('content-type', 'application/json').end('{"runs":[]}')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const found = await ran(['ps', '--url', url, '--user', 'a b', '--agent', 'x'])
    expect([found.code, found.err]).toEqual([0, 'no matching runs\n'])
    await ran(['ps', '--url', url, '--user', ''])
    expect(asked.filter((path) => path.startsWith('/api/runs'))).toEqual([
      '/api/runs?limit=20&agent=x&user=a+b',
      '/api/runs?limit=20&user=',
    ])
  })
})
