/** `millrace tell` and what `millrace show` says of messages into a running turn. */
import { expect, onTestFinished, test } from 'vitest'
import type { RunRow } from '../../src/part/log.ts'
import { folder, ran, serving } from '../support/cli.ts'
import { startUpstream } from '../support/upstream.ts'

const yaml = `workflow:
  - { id: answer, type: llm, config: { model: "up:m", stream: true } }
`

async function start() {
  const gate = Promise.withResolvers<void>()
  const upstream = await startUpstream(async (reply, n) => {
    reply.say(`told: ${String(reply.body.messages.at(-1)!.content)}.`)
    if (n === 1) await gate.promise
    reply.finish()
  })
  onTestFinished(() => upstream.close())
  const cwd = folder({ 'agents/up.yaml': yaml })
  const server = await serving(['--endpoint', `up=${upstream.baseURL}`], { cwd })
  const body = JSON.stringify({ agentId: 'up', input: { messages: [{ role: 'user', content: 'Hi' }] } })
  const headers = { 'content-type': 'application/json' }
  const { id } = (await (await fetch(`${server.url}/api/runs`, { method: 'POST', headers, body })).json()) as RunRow
  await expect.poll(() => upstream.requests.length).toBe(1)
  const waiting = async () => {
    const view = (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as { waiting?: object[] }
    return view.waiting?.length ?? 0
  }
  const ended = async () => (await (await fetch(`${server.url}/api/runs/${id}`)).json()) as { status: string }
  return { cwd, id, gate, waiting, ended }
}

test('a message goes into the run, and show has it between the steps', async () => {
  const { cwd, id, gate, waiting, ended } = await start()
  const told = await ran(['tell', id, 'Shorter'], { cwd })
  expect([told.code, told.out, told.err]).toEqual([
    0,
    '',
    expect.stringMatching(new RegExp(`^message \\S+ goes into ${id}\n$`, 'u')),
  ])
  expect(await waiting()).toBe(1)
  gate.resolve()
  await expect.poll(async () => (await ended()).status).toBe('completed')
  const { out } = await ran(['show', id], { cwd })
  expect(out).toContain('» Shorter')
  const steps = out.slice(out.indexOf('Steps'), out.indexOf('Models'))
  expect(steps.indexOf('├─ 1')).toBeLessThan(steps.indexOf('» Shorter'))
  expect(steps.indexOf('» Shorter')).toBeLessThan(steps.indexOf('└─ 2'))
  const late = await ran(['tell', id, 'More'], { cwd })
  expect([late.code, late.err]).toEqual([expect.any(Number), expect.stringContaining(`Run ${id} has ended.`)])
  expect(late.code).not.toBe(0)
})

test('--queue: it gets a run of its own', async () => {
  const { cwd, id, gate, ended } = await start()
  expect((await ran(['tell', id, 'Next', '--queue'], { cwd })).err).toContain(`gets a run of its own after ${id}`)
  gate.resolve()
  await expect.poll(async () => (await ended()).status).toBe('completed')
  const rows = async () => JSON.parse((await ran(['ps', '--json'], { cwd })).out) as RunRow[]
  await expect
    .poll(async () => (await rows()).map(({ title, status }) => `${title} ${status}`))
    .toEqual(['Next completed', 'Hi completed'])
})

test('without a server nobody would read it', async () => {
  const cwd = folder({
    'agents/a.yaml': 'workflow: [{ id: a, type: llm, config: { model: "demo:assistant", stream: true } }]',
  })
  await ran(['run', 'a', '-m', 'Hi'], { cwd })
  const [{ id }] = JSON.parse((await ran(['ps', '--json'], { cwd })).out) as [RunRow]
  expect(await ran(['tell', id, 'More'], { cwd })).toMatchObject({
    out: '',
    err: expect.stringContaining('start millrace serve first'),
  })
})
