/** `server.rateLimit` and `server.streamLimit` as callers of several servers see them. */
import { expect, onTestFinished, test } from 'vitest'
import { serve } from '../../src/server/serve.ts'
import { placeLease } from '../../src/store/redis/limits-script.ts'
import { folder } from '../support/cli.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { spawnServer } from '../support/server-process.ts'

const workflow = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]'
const body = JSON.stringify({ agentId: 'a', input: { messages: [{ role: 'user', content: 'count to 3' }] } })

describeRedis('over servers that share Redis', (redis) => {
  function dirWith(server: object, store: string): string {
    const settings = { record: { data: 'none', store }, server: { port: 0, ...server } }
    return folder({ 'a.yaml': workflow, 'millrace.config.mjs': `export default ${JSON.stringify(settings)}\n` })
  }

  test('so many starts for each key over all servers, then 429 with Retry-After at each; another key, and no key, count for themselves', async () => {
    const dir = dirWith({ rateLimit: { runsPerMinute: 2 } }, `${redis().url}?prefix=${freshPrefix()}`)
    const start = async (apiKey?: string) => {
      const server = await serve({ dir, env: {}, ...(apiKey !== undefined && { apiKey }) })
      onTestFinished(() => server.close())
      const headers = {
        'content-type': 'application/json',
        ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      }
      return () => fetch(`${server.url}/api/runs`, { method: 'POST', headers, body })
    }
    const [one, other] = [await start('a-long-secret-key'), await start('a-long-secret-key')]
    const [elsewhere, open] = [await start('another-secret-key'), await start()]
    const answers = await Promise.all([one(), other(), one(), other(), one(), other()])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([202, 202, 429, 429, 429, 429])
    for (const refusing of [one, other]) {
      const refused = await refusing()
      const { error } = (await refused.json()) as { error: { message: string } }
      expect([refused.status, error.message]).toEqual([
        429,
        expect.stringMatching(/^Too many runs were started with this key\. The limit is 2 runs per minute\./u),
      ])
      // Half a minute, less what has passed: that long, this test may take.
      const wait = Number(refused.headers.get('retry-after'))
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBeLessThanOrEqual(30)
    }
    for (const free of [elsewhere, open]) expect((await free()).status).toBe(202)
  })

  test('kill -9 of a server that has streams: their places are free a few seconds later, and not before', async () => {
    const dir = dirWith({ streamLimit: 2 }, `${redis().url}?prefix=${freshPrefix()}`)
    const killed = await spawnServer(dir, folder())
    onTestFinished(() => killed.kill())
    const left = await serve({ dir, env: {} })
    onTestFinished(() => left.close())
    const open = (url: string) => fetch(`${url}/api/events`, { headers: { accept: 'text/event-stream' } })
    const held = [await open(killed.url), await open(killed.url)]
    expect(held.map(({ status }) => status)).toEqual([200, 200])
    for (const { body: stream } of held)
      stream!
        .getReader()
        .read()
        .catch(() => undefined)
    expect((await open(left.url)).status).toBe(429)
    // It has leased them again by then.
    await new Promise((resolve) => setTimeout(resolve, placeLease + 500))
    expect((await open(left.url)).status).toBe(429)
    await killed.kill()
    const free = async () => {
      const response = await open(left.url)
      if (response.status === 200) return response
      expect(response.status).toBe(429)
      return undefined
    }
    const opened: Response[] = []
    await expect
      .poll(
        async () => {
          const response = await free()
          if (response !== undefined) opened.push(response)
          return opened.length
        },
        { timeout: 60_000 },
      )
      .toBe(2)
    expect((await open(left.url)).status).toBe(429)
    for (const { body: stream } of opened) await stream!.cancel()
  }, 120_000)
})
