/** Instances whose Redis is away: as long as requests wait for it, the balancer shall leave them in. */
import { expect, onTestFinished, test } from 'vitest'
import { startBalancer } from '../../examples/scale/balancer.ts'
import { serve } from '../../src/server/serve.ts'
import { folder } from '../support/cli.ts'
import { describeRedis, freshPrefix, startRedis } from '../support/redis.ts'

const agent = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]'
const json = { 'content-type': 'application/json' }

describeRedis('while Redis is away', () => {
  test('health is 200 as long as requests wait, and they are answered when it is back; after that, 503 with Retry-After', async () => {
    const redis = await startRedis({ aof: true })
    onTestFinished(() => redis.close())
    const store = `${redis.url}?prefix=${freshPrefix()}`
    const dir = folder({
      'a.yaml': agent,
      'millrace.config.mjs': `export default ${JSON.stringify({ server: { port: 0 } })}`,
    })
    const start = async () => {
      const served = await serve({
        dir,
        store,
        data: 'none',
        env: { MILLRACE_DEMO_DELAY_MS: '0' },
        log: () => undefined,
      })
      onTestFinished(() => served.close())
      return served.url
    }
    const urls = [await start(), await start()]
    const balancer = await startBalancer(
      urls.map((url) => new URL(url)),
      0,
    )
    onTestFinished(() => balancer.close())
    const ask = async () => {
      const body = JSON.stringify({ agentId: 'a', messages: [{ role: 'user', content: 'Hi' }] })
      const response = await fetch(`${balancer.url}/api/beddel/chat`, { method: 'POST', headers: json, body })
      return { status: response.status, text: await response.text() }
    }
    const health = () =>
      Promise.all(
        urls.map(async (url) => {
          const response = await fetch(`${url}/health`)
          const { status, reasons } = (await response.json()) as { status: string; reasons?: string[] }
          return [response.status, status, reasons]
        }),
      )
    const both = (...each: unknown[]) => [each, each]
    expect(await health()).toEqual(both(200, 'ok', undefined))
    expect(await ask()).toMatchObject({ status: 200 })

    await redis.kill()
    await expect.poll(health).toEqual(both(200, 'waiting', ['The store cannot be reached. Requests wait for it.']))
    const waiting = [ask(), ask()]
    await redis.restart()
    for (const asked of waiting) expect(await asked).toMatchObject({ status: 200, text: expect.stringMatching(/./u) })
    await expect.poll(health).toEqual(both(200, 'ok', undefined))

    await redis.kill()
    const refused = await fetch(`${urls[0]}/api/runs`)
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    await expect
      .poll(health)
      .toEqual(
        both(503, 'degraded', [
          expect.stringMatching(/^(?:The store cannot be reached|Runs cannot be stored: the store failed)\.$/u),
        ]),
      )
    await redis.restart()
    await expect.poll(health).toEqual(both(200, 'ok', undefined))
    expect(await ask()).toMatchObject({ status: 200 })
  })
})
