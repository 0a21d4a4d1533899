/** The process that sends the spans of all runs is killed while it sends: the next one misses nothing, and repeats what nobody has confirmed. */
import { expect, onTestFinished, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { parseJson } from '../../src/part/json.ts'
import { spansOf } from '../../src/record.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { folder } from '../support/cli.ts'
import { startCollector } from '../support/collector.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer, type ServerProcess } from '../support/server-process.ts'

describeRedis('with a shared store', (redis) => {
  test('kill -9 of the process that sends spans: another one goes on, no span is missing, and one sent again has its id', async () => {
    const confirmed = Promise.withResolvers<void>()
    onTestFinished(() => confirmed.resolve())
    const collector = await startCollector({ status: 200 }, { status: 200, after: confirmed.promise })
    const config = { telemetry: { otlp: { endpoint: collector.url } } }
    const dir = folder({
      'a.yaml': 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]',
      'millrace.config.mjs': `export default ${JSON.stringify(config)}`,
    })
    const url = `${redis().url}?prefix=${freshPrefix()}`
    const store = await redisStore(url)
    onTestFinished(() => store.close())
    const start = async () => {
      const server = await spawnServer(dir, folder(), '--store', url)
      onTestFinished(() => server.kill())
      return server
    }
    const ended = async (at: ServerProcess): Promise<string> => {
      const body = JSON.stringify({ agentId: 'a', input: { messages: [{ role: 'user', content: 'count to 3' }] } })
      const headers = { 'content-type': 'application/json' }
      const { id } = (await (await fetch(`${at.url}/api/runs`, { method: 'POST', headers, body })).json()) as {
        id: string
      }
      await (await fetch(`${at.url}/api/runs/${id}/events?follow=1`)).text()
      return id
    }
    const position = async () => (await store.positions!.get('otlp'))?.position
    const sender = await start()
    await expect.poll(position).toBeDefined()
    const other = await start()

    const before = (await position())!
    const first = await ended(other)
    await collector.received(1)
    await expect.poll(position).toBeGreaterThan(before)
    // This one is sent, but the answer is lost with the process that waits for it.
    const second = await ended(sender)
    await collector.received(2)
    const third = await ended(other)
    const lastKept = await position()
    await sender.kill()
    const fourth = await ended(other)
    const runs = [first, second, third, fourth]
    const expected = new Map<string, string[]>()
    for (const run of runs) {
      const text = await (await fetch(`${other.url}/api/runs/${run}/events?follow=1`)).text()
      const entries = text
        .trim()
        .split('\n')
        .map((line) => parseJson(line) as Entry)
      expected.set(
        run,
        spansOf(entries).map(({ spanId }) => spanId),
      )
    }
    const counts = () => {
      const ids = collector.spans.map(({ spanId }) => spanId)
      const times = (spanId: string) => ids.filter((id) => id === spanId).length
      return Object.fromEntries(runs.map((run) => [run, [...new Set(expected.get(run)!.map(times))]]))
    }
    await expect.poll(counts).toEqual({ [first]: [1], [second]: [2], [third]: [1], [fourth]: [1] })
    expect(new Set(collector.spans.map(({ spanId }) => spanId))).toEqual(new Set([...expected.values()].flat()))
    await expect.poll(position).toBeGreaterThan(lastKept!)
  })
})
