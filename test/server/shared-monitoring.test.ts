/** What watches the runs of a shared store from several processes: spans are sent by one of them, metrics are each one's own. */
import { expect, onTestFinished, test } from 'vitest'
import { finish, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import type { Store } from '../../src/part/log.ts'
import { createRunMetrics } from '../../src/record/metrics/run-metrics.ts'
import { exportSpans } from '../../src/record/otlp/exporter.ts'
import { fleetMetrics } from '../../src/server/fleet-metrics.ts'
import { partitionOf } from '../../src/store/redis/keys.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { startCollector, type Collector } from '../support/collector.ts'
import { agent, createEngine, entriesOf, only, until } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { describeRedis, freshPrefix, type RedisServer } from '../support/redis.ts'

const messages = [{ role: 'user' as const, content: 'Hi' }]

function engineOn(store: Store) {
  const script = createTold((prompt) =>
    JSON.stringify(prompt).includes('choose') && resultsIn(prompt).size === 0
      ? [toolCall('c1', 'choose'), finish('tool-calls')]
      : [text('Hello'), finish('stop', { in: 10, out: 5 })],
  )
  const wrapStore = (own: Store) => {
    void own.close()
    return store
  }
  const agents = { a: agent('tools: [{ name: choose, client: true }]') }
  const engine = createEngine({ agents, scripts: { m: script }, wrapStore })
  onTestFinished(() => engine.close())
  const run = async () => {
    const { id, result } = await engine.runtime.start('a', { messages })
    await result
    return id
  }
  return { ...engine, run }
}

async function exporting(redis: RedisServer, prefix: string, { url }: Collector) {
  const inner = await redisStore(`${redis.url}?prefix=${prefix}`)
  const settings = { url: `${url}/v1/traces`, headers: {}, serviceName: 'mill', content: false }
  return engineOn(exportSpans(inner, { settings, log: () => undefined, delay: 5 }))
}

const rootsOf = ({ spans }: Collector) =>
  spans.filter(({ name }) => name === 'invoke_agent a').map(({ attributes }) => attributes['millrace.run.id'])

describeRedis('with a shared store', (redis) => {
  test('each span is sent once, by one process; when it stops, another one goes on from its position', async () => {
    const prefix = freshPrefix()
    const collector = await startCollector()
    const one = await exporting(redis(), prefix, collector)
    const other = await exporting(redis(), prefix, collector)
    const positions = other.store.positions!
    await expect.poll(() => positions.get('otlp')).toBeDefined()
    const runs = [await one.run(), await other.run(), await one.run()]
    await expect.poll(() => rootsOf(collector)).toEqual(runs)
    const sender = (await positions.get('otlp'))!.by
    await one.close()
    runs.push(await other.run())
    await expect.poll(() => rootsOf(collector)).toEqual(runs)
    expect((await positions.get('otlp'))!.by).not.toBe(sender)

    // Another one has taken its place while it could not see that.
    await positions.keep('otlp', await other.store.log.position(), 'other')
    runs.push(await other.run())
    await expect.poll(() => rootsOf(collector)).toEqual(runs)
    expect((await positions.get('otlp'))!.by).not.toBe('other')
    const ids = collector.spans.map(({ spanId }) => spanId)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('of one that died the place is free some seconds later, and what it had not sent is sent', async () => {
    const prefix = freshPrefix()
    const store = await redisStore(`${redis().url}?prefix=${prefix}`)
    const first = engineOn(store)
    const sent = await first.run()
    await store.positions!.keep('otlp', await store.log.position(), 'dead')
    const run = await first.run()
    const freeAt = Date.now() + 1500
    const places = `{${prefix}:${partitionOf('otlp')}}:places:otlp`
    await redis().command('ZADD', places, String(freeAt), 'dead:0')
    const collector = await startCollector()
    await exporting(redis(), prefix, collector)
    await collector.received(1)
    expect(Date.now()).toBeGreaterThanOrEqual(freeAt)
    expect(rootsOf(collector)).toEqual([run])
    expect(run).not.toBe(sent)
  })

  test('each process counts what it has stored, so that a sum counts all once; a run may go on in another', async () => {
    const url = `${redis().url}?prefix=${freshPrefix()}`
    const [one, other] = [engineOn(await redisStore(url)), engineOn(await redisStore(url))]
    const metrics = [one, other].map(({ store }) => createRunMetrics(store))
    const linesOf = async (name: string) => {
      const texts = await Promise.all(metrics.map((each) => each.read()))
      return texts.map((each) => each.split('\n').filter((line) => line.startsWith(name)))
    }
    await one.run()
    expect(await linesOf('millrace_runs_ended_total{')).toEqual([
      ['millrace_runs_ended_total{agent="a",outcome="completed"} 1'],
      [],
    ])
    const asked = [{ role: 'user' as const, content: 'Please choose' }]
    const { id } = await one.runtime.start('a', { messages: asked })
    await until(one.store, id, ({ type }) => type === 'suspend')
    const [request] = only(await entriesOf(one.store, id), 'request')
    await one.close()
    await other.runtime.answer(id, request!.requestId, { kind: 'tool', output: 'one' })
    await until(other.store, id, ({ type }) => type === 'run-end')
    expect(await linesOf('millrace_runs_started_total{')).toEqual([['millrace_runs_started_total{agent="a"} 2'], []])
    expect((await linesOf('millrace_runs_ended_total{'))[1]).toEqual([
      'millrace_runs_ended_total{agent="a",outcome="completed"} 1',
    ])
    expect((await linesOf('millrace_run_duration_seconds_count'))[1]).toEqual([
      'millrace_run_duration_seconds_count{agent="a"} 1',
    ])
    const monitored = await fleetMetrics(other.store)
    for (const line of ['millrace_store_takeovers_total 0', 'millrace_store_pending_writes 0'])
      expect(monitored).toContain(line)
    expect(await other.store.status!()).toMatchObject({ pending: 0, takeovers: 0, claims: { won: 1 } })
  })
})
