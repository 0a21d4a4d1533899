/**
 * A script makes twelve calls, three at a time, to a tool that asks the test, which kills the server (SIGKILL) instead of answering: no call is made twice,
 * the script goes on where it was, and the run ends once. On Redis another server takes over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { startMortalServer, type MortalServer } from '../support/mortal-server.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer } from '../support/server-process.ts'

const script = `
const work = (what) => tools.work({ what }).catch(() => 'lost ' + what)
const all = []
for (let round = 0; round < 4; round++) all.push(...(await Promise.all([0, 1, 2].map((i) => work(round * 3 + i)))))
console.log(all.length, 'calls')
return all`
const agent = `
recover: true
workflow:
  - { id: many, type: script, result: many, config: { code: ${JSON.stringify(script)}, tools: [work] } }
`

let clean: (() => Promise<unknown> | void)[] = []
afterEach(async () => {
  for (const each of clean.toReversed()) await each()
  clean = []
})

/** `kills`: at which calls, counted over all servers, the server dies. `spare`: another server stands by. */
async function survives(kills: readonly number[], flags: readonly string[], spare: boolean): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-scripts-'))
  clean.push(() => rmSync(dir, { recursive: true, force: true }))
  mkdirSync(join(dir, 'agents'))
  writeFileSync(join(dir, 'agents', 'many.yaml'), agent)
  const asked: string[] = []
  let server: MortalServer | undefined
  const world = createServer((request, response) => {
    asked.push(new URL(request.url!, 'http://here').searchParams.get('what')!)
    if (!kills.includes(asked.length)) return response.end('did')
    // Whichever runs the script dies. Its answer is lost with it.
    void server!.kill()
    return response.destroy()
  })
  await new Promise<void>((resolve) => void world.listen(0, '127.0.0.1', resolve))
  clean.push(() => void world.close())
  const place = `http://127.0.0.1:${(world.address() as AddressInfo).port}/`
  const config = `
const parameters = { type: 'object', properties: { what: { type: 'integer' } } }
const execute = async ({ what }) => (await (await fetch('${place}?what=' + what)).text()) + ' ' + what
export default { tools: { work: { parameters, execute } } }
`
  writeFileSync(join(dir, 'agents', 'millrace.config.mjs'), config)
  const boot = (name: string) => spawnServer(join(dir, 'agents'), join(dir, name), ...flags)
  clean.push(() => server?.end())
  server = await startMortalServer({ boot, spare })
  const { id: runId } = (await (await server.post('/api/runs', { agentId: 'many', input: {} })).json()) as {
    id: string
  }
  await server.standBy()
  const shown = await server.completed(runId, 60_000)
  expect(server.deaths()).toBe(kills.length)
  expect(new Set(asked).size).toBe(asked.length)
  const { many } = shown.output as { many: string[] }
  expect(many.map((each) => each.split(' ')[1])).toEqual(Array.from({ length: 12 }, (_, i) => String(i)))
  const lost = many.filter((each) => each.startsWith('lost'))
  expect(lost.length).toBeGreaterThanOrEqual(kills.length)
  expect(lost.length).toBeLessThanOrEqual(3 * kills.length)
  const entries = await server.entries(runId)
  expect(entries.filter(({ type }) => type === 'run-end')).toHaveLength(1)
  expect(entries.filter(({ type }) => type === 'data')).toHaveLength(1)
  const calls = entries.flatMap((entry) => (entry.type === 'tool-call' ? [entry.toolCallId] : []))
  expect(calls).toEqual(Array.from({ length: 12 }, (_, i) => `script.main/many.${i + 1}`))
}

test.each([[12], [1, 6], [2, 5], [3, 7, 10]])('SQLite: killed at call %j', (...kills) => survives(kills, [], false))

describeRedis('Redis', (redis) => {
  test.each([[2], [5, 9], [12]])('killed at call %j, and taken over', (...kills) =>
    survives(kills, ['--store', `${redis().url}?prefix=${freshPrefix()}`], true),
  )
})
