/**
 * A run with summaries, handles, a skill, cache marks and a message into it, whose server is killed (SIGKILL) twelve times: within model calls, within a
 * summary, behind it, and within tools. It ends once, and no summary that was recorded is made again. On Redis another server takes over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { only } from '../support/engine.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'
import { startStrictServer, type AskedModel } from '../support/strict-model-server.ts'
import { firstTask, isSummary, pages, pageText, readPages, windowAgent } from '../support/window-kills.ts'

const skill = '---\nname: counting\ndescription: How pages are counted\n---\n\nOne after the other.\n'

type Kills = readonly (number | 'summary' | 'behind')[]

/** `kills`: at which requests of the model the server dies, counted over all; a name is the first of its kind. `spare`: another server stands by. */
async function survives(kills: Kills, tools: readonly number[], flags: readonly string[], spare: boolean) {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-window-'))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  let server: ServerProcess | undefined
  let other: ServerProcess | undefined
  let killing: Promise<void> | undefined
  let killed = 0
  /** Whichever runs the run dies, and its answer is lost with it. */
  const kill = () => (killing ??= server!.kill())
  const left = [...kills]
  const leftTools = [...tools]
  let requests = 0
  /** The calls of the model of summaries, and whether their server died first. */
  const summaries: { left: boolean }[] = []
  const heard = () => summaries.filter((each) => !each.left).length
  const isDue = (asked: AskedModel): boolean => {
    requests++
    // The server that goes on is not the one that dies next, until it is known.
    if (killing !== undefined) return false
    const at = left.findIndex((each) => {
      if (each === 'summary') return isSummary(asked)
      if (each === 'behind') return heard() > 0 && !isSummary(asked)
      return requests >= each
    })
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  }
  const model = await startStrictServer({
    window: 16_000,
    async answer(asked) {
      const due = isDue(asked)
      if (isSummary(asked)) {
        const call = { left: false }
        summaries.push(call)
        void asked.left.then(() => (call.left = true))
      }
      // A slow machine may have taken the run over before: then it is not its owner that dies, and the answer is heard.
      if (due) await kill()
      return readPages(asked)
    },
  })
  const read: number[] = []
  const world = createServer((request, response) => {
    read.push(Number(new URL(request.url!, 'http://here').searchParams.get('page')))
    const isDue = killing === undefined && read.length >= (leftTools[0] ?? Infinity)
    if (!isDue) return response.end(pageText(read.at(-1)!))
    leftTools.shift()
    void kill()
    return response.destroy()
  })
  await new Promise<void>((resolve) => void world.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await Promise.all([server?.kill(), other?.kill()])
    world.close()
    await model.close()
    rmSync(dir, { recursive: true, force: true })
  })
  write('agents/a.yaml', windowAgent('box:m', '[skills/*]'))
  write('agents/skills/counting/SKILL.md', skill)
  const place = `http://127.0.0.1:${(world.address() as AddressInfo).port}/`
  write(
    'agents/millrace.config.mjs',
    `const parameters = { type: 'object', properties: { page: { type: 'integer' } } }
const execute = async ({ page }) => (await fetch('${place}?page=' + page)).text()
const endpoints = [{ name: 'box', baseURL: '${model.baseURL}', protocol: 'anthropic' }]
export default { models: { endpoints }, tools: { read: { parameters, execute } } }`,
  )
  const boot = (name: string) => spawnServer(join(dir, 'agents'), join(dir, name), ...flags)
  server = await boot('data')
  const post = (path: string, body: object) =>
    fetch(server!.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const input = { messages: [{ id: 'u1', role: 'user', content: firstTask }] }
  const { id } = (await (await post('/api/runs', { agentId: 'a', input, threadId: 't' })).json()) as { id: string }
  if (spare) other = await boot('data2')
  await post(`/api/runs/${id}/messages`, { id: 'm1', content: 'Only the last year' }).catch(() => undefined)
  const view = async () => {
    if (killing !== undefined) {
      await killing
      killing = undefined
      killed++
      if (spare) {
        server = other
        other = await boot(`data${killed + 2}`)
      } else server = await boot('data')
      // Whether the first post was stored is not known: the same id is the same message.
      await post(`/api/runs/${id}/messages`, { id: 'm1', content: 'Only the last year' }).catch(() => undefined)
    }
    const found = await fetch(`${server!.url}/api/runs/${id}`).catch(() => undefined)
    return found?.ok === true ? ((await found.json()) as { status: string; text: string }) : undefined
  }
  await expect.poll(async () => (await view())?.status, { interval: 20, timeout: 100_000 }).toBe('completed')
  expect(killed).toBe(kills.length + tools.length)
  expect((await view())!.text).toContain(`${pages} pages. I was told: ${firstTask}`)
  expect(model.refused).toEqual([])
  const headers = { accept: 'application/x-ndjson' }
  const lines = await (await fetch(`${server.url}/api/runs/${id}/events`, { headers })).text()
  const entries = lines.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Entry] : []))
  expect(only(entries, 'run-end')).toHaveLength(1)
  expect(only(entries, 'message').map((entry) => entry.id)).toEqual(['m1'])
  // Each answer of the summary's model is one entry: none was asked for again.
  expect(only(entries, 'summarized')).toHaveLength(heard())
  expect(only(entries, 'warning').map(({ code }) => code)).not.toContain('history-cut')
  expect(new Set(read).size).toBe(read.length)
}

test.each<[Kills, number[]]>([
  [[2, 5, 8, 11, 14, 17, 20, 23], []],
  [['summary', 'behind', 'summary'], [2]],
])('SQLite: killed at %j and at tools %j', { timeout: 120_000 }, (kills, tools) => survives(kills, tools, [], false))

describeRedis('Redis', (redis) => {
  test.each<[Kills, number[]]>([
    [[3, 9, 16, 22], []],
    [['summary', 'behind'], [4]],
  ])('killed at %j and at tools %j, and taken over', { timeout: 120_000 }, (kills, tools) =>
    survives(kills, tools, ['--store', `${redis().url}?prefix=${freshPrefix()}`], true),
  )
})
