/**
 * A run with summaries, handles, a skill, cache marks and a message into it, whose server is killed (SIGKILL) again and again: within model calls, within a
 * summary, behind it, and within tools. It ends once, and no summary that was recorded is made again. On Redis another server takes over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { only } from '../support/engine.ts'
import { startMortalServer, type MortalServer } from '../support/mortal-server.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer } from '../support/server-process.ts'
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
  let server: MortalServer | undefined
  const left = [...kills]
  const leftTools = [...tools]
  let requests = 0
  /** The calls of the model of summaries, and whether their server died first. */
  const summaries: { left: boolean }[] = []
  const heard = () => summaries.filter((each) => !each.left).length
  const isDue = (asked: AskedModel): boolean => {
    requests++
    // The server that goes on is not the one that dies next, until it is known.
    if (server!.isDying()) return false
    const at = left.findIndex((each) => {
      if (each === 'summary') return isSummary(asked)
      if (each === 'behind') return heard() > 0 && !isSummary(asked)
      return requests >= each
    })
    if (at >= 0) left.splice(at, 1)
    return at >= 0
  }
  const told = Promise.withResolvers<void>()
  const model = await startStrictServer({
    window: 16_000,
    async answer(asked) {
      // A run on a slow machine is not over before it has got its message.
      await told.promise
      const due = isDue(asked)
      if (isSummary(asked)) {
        const call = { left: false }
        summaries.push(call)
        void asked.left.then(() => (call.left = true))
      }
      // A slow machine may have taken the run over before: then it is not its owner that dies, and the answer is heard.
      if (due) await server!.kill()
      return readPages(asked)
    },
  })
  const read: number[] = []
  const world = createServer((request, response) => {
    read.push(Number(new URL(request.url!, 'http://here').searchParams.get('page')))
    const isDue = !server!.isDying() && read.length >= (leftTools[0] ?? Infinity)
    if (!isDue) return response.end(pageText(read.at(-1)!))
    leftTools.shift()
    void server!.kill()
    return response.destroy()
  })
  await new Promise<void>((resolve) => void world.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    await server?.end()
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
  let id: string | undefined
  // Whether it was stored before a death is not known: the same id is the same message.
  const tell = () =>
    server?.post(`/api/runs/${id}/messages`, { id: 'm1', content: 'Only the last year' }).catch(() => undefined)
  server = await startMortalServer({ boot, spare, onNext: async () => tell() })
  const input = { messages: [{ id: 'u1', role: 'user', content: firstTask }] }
  const started = await server.post('/api/runs', { agentId: 'a', input, threadId: 't' })
  ;({ id } = (await started.json()) as { id: string })
  await server.standBy()
  await tell()
  told.resolve()
  const { text } = await server.completed(id, 100_000)
  expect(server.deaths()).toBe(kills.length + tools.length)
  expect(text).toContain(`${pages} pages. I was told: ${firstTask}`)
  expect(model.refused).toEqual([])
  const entries = await server.entries(id)
  expect(only(entries, 'run-end')).toHaveLength(1)
  expect(only(entries, 'message').map((entry) => entry.id)).toEqual(['m1'])
  // Each answer of the summary's model is one entry: none was asked for again.
  expect(only(entries, 'summarized')).toHaveLength(heard())
  expect(only(entries, 'warning').map(({ code }) => code)).not.toContain('history-cut')
  expect(new Set(read).size).toBe(read.length)
}

test.each<[Kills, number[]]>([
  [[2, 8, 14, 20], []],
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
