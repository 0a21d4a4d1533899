/** A rolling deploy: a server that gets SIGTERM takes nothing more, keeps its readers, hands its runs over, and goes. */
import { expect, onTestFinished, test } from 'vitest'
import { startBalancer } from '../../examples/scale/balancer.ts'
import type { Entry } from '../../src/part/entry.ts'
import { parseJson } from '../../src/part/json.ts'
import { grammarFaults } from '../support/engine.ts'
import { folder } from '../support/cli.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { readBody } from '../support/server.ts'
import { spawnServer } from '../support/server-process.ts'
import { startUpstream } from '../support/upstream.ts'

const messages = [{ role: 'user', content: 'Go' }]
const json = { 'content-type': 'application/json' }

describeRedis('a rolling deploy', (redis) => {
  test(
    'requests go elsewhere, readers stay or read on elsewhere, runs go on between two calls',
    { timeout: 60_000 },
    async () => {
      const upstream = await startUpstream((reply) => reply.accept())
      onTestFinished(() => upstream.close())
      const settings = {
        server: { drainMs: 700, graceMs: 2500 },
        models: { endpoints: [{ name: 'up', baseURL: upstream.baseURL }] },
      }
      const dir = folder({
        'two.yaml':
          'workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [calculator] } }]',
        'quick.yaml': 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]',
        'millrace.config.mjs': `export default ${JSON.stringify(settings)}`,
      })
      const store = `${redis().url}?prefix=${freshPrefix()}`
      const data = folder()
      const [old, other] = await Promise.all([0, 1].map(() => spawnServer(dir, data, '--store', store)))
      onTestFinished(async () => void (await Promise.all([old!.kill(), other!.kill()])))
      const balancer = await startBalancer([new URL(old!.url), new URL(other!.url)], 0)
      onTestFinished(() => balancer.close())
      const start = async () => {
        const body = JSON.stringify({ agentId: 'two', messages })
        const response = await fetch(`${old!.url}/api/chat`, { method: 'POST', headers: json, body })
        return { id: response.headers.get('x-millrace-run-id')!, body: readBody(response) }
      }
      const asked = (n: number) => expect.poll(() => upstream.requests.length).toBe(n)
      const events = (url: string, run: string, after: number) =>
        fetch(`${url}/api/runs/${run}/events?follow=1&after=${after}`, { headers: { accept: 'application/x-ndjson' } })

      // Two runs on the old server, each in its first call. One is also followed as a log.
      const startings = [start(), start()]
      await asked(2)
      for (const { say } of upstream.requests) say('one ')
      const [near, far] = await Promise.all(startings)
      const followed = readBody(await events(old!.url, far!.id, 0))
      await followed.until('one ')

      old!.signal('SIGTERM')
      const health = async () => {
        const { status, headers } = await fetch(`${old!.url}/health`)
        return [status, headers.get('connection')]
      }
      await expect.poll(health).toEqual([503, 'close'])
      const ask = (url: string) =>
        fetch(`${url}/api/runs`, {
          method: 'POST',
          headers: json,
          body: JSON.stringify({ agentId: 'quick', input: { messages } }),
        })
      const refused = await ask(old!.url)
      expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('connection')]).toEqual([
        503,
        '1',
        'close',
      ])
      expect(await refused.json()).toMatchObject({ error: { code: 'closing' } })
      expect((await fetch(`${old!.url}/health/live`)).status).toBe(200)
      const told = async () => (await (await fetch(`${other!.url}/metrics`)).text()).split('\n')
      await expect
        .poll(told)
        .toEqual(
          expect.arrayContaining([
            'millrace_fleet_processes{state="alive"} 1',
            'millrace_fleet_processes{state="draining"} 1',
            'millrace_fleet_processes{state="dead"} 0',
            'millrace_store_connected 1',
          ]),
        )
      const { fleet } = (await (await fetch(`${other!.url}/health`)).json()) as { fleet: object }
      expect(fleet).toMatchObject({ alive: 2, draining: 1 })

      // Whatever comes while it goes is answered by the other one.
      const load: Promise<number>[] = []
      const loading = setInterval(
        () =>
          load.push(
            ask(balancer.url).then(
              ({ status }) => status,
              () => 0,
            ),
          ),
        50,
      )
      onTestFinished(() => clearInterval(loading))
      for (const { call, finish } of upstream.requests.slice(0, 2)) {
        call('c1', 'calculator', { expression: '6*7' })
        finish('tool_calls')
      }
      await asked(4)
      // This one ends while the old server still has its readers.
      const [third, fourth] = upstream.requests.slice(2)
      third!.say('two')
      third!.finish()
      const texts = await Promise.race([
        near!.body.rest().then(() => near!),
        // Which of them it was depends on who asked first.
        far!.body.rest().then(() => far!),
      ])
      expect(texts.body.text).toContain('two')
      expect(texts.body.text).toContain('[DONE]')
      expect(texts.body.text).not.toContain('"error"')
      // The other one goes on behind the end of the old server: its readers are broken off, and hear of no error.
      const left = texts === near ? far! : near!
      await expect(left.body.rest()).rejects.toThrow()
      expect(left.body.text).not.toMatch(/"error"|\[DONE\]|abort/u)
      expect(await old!.exit).toBe(0)
      clearInterval(loading)
      expect(new Set(await Promise.all(load))).toEqual(new Set([202]))
      expect(load.length).toBeGreaterThan(10)

      fourth!.say('three')
      fourth!.finish()
      for (const { id } of [near!, far!]) {
        const lines = (await (await events(balancer.url, id, 0)).text()).trim().split('\n')
        const entries = lines.map((line) => parseJson(line) as Entry)
        expect(grammarFaults(entries, false)).toEqual([])
        expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
        expect(entries.filter(({ type }) => type === 'step-reset')).toEqual([])
      }
      // Four calls: nothing was asked twice.
      expect(upstream.requests).toHaveLength(4)
      // Who followed the log reads on from where it broke off.
      const seen = followed.text.trim().split('\n')
      expect(seen.length).toBeGreaterThan(2)
    },
  )
})
