/** Redis loses its last second together with the instance that wrote it: whoever read that elsewhere is told so, in the form of its protocol. */
import { expect, onTestFinished, test } from 'vitest'
import { startLossyRedis } from '../support/lossy-redis.ts'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'
import { entryOf, startFleet, startRun, type Instance } from './fleet.ts'

const a = 'onDisconnect: detach\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]'
const sse = { accept: 'text/event-stream' }

/** Reads to the end, however it comes. */
function reading(asked: Promise<Response>) {
  const read = { text: '', status: 0, end: Promise.resolve() }
  read.end = (async () => {
    const response = await asked
    read.status = response.status
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) read.text += decoder.decode(chunk, { stream: true })
  })()
  return read
}

/** How a protocol is read at an instance that does not run it; and how it says that what was read is lost. */
const wires: Record<string, { read(other: Instance, run: string, thread: string): Promise<Response>; lost: RegExp }> = {
  'the UI stream': {
    read: ({ url }, _, thread) => fetch(`${url}/api/chat/${thread}/stream`),
    lost: /data: \{"type":"error","errorText":"[^"]*lost entries of run/u,
  },
  'AG-UI': {
    read: ({ url }, _, thread) => fetch(`${url}/ag-ui/a/connect?threadId=${thread}`, { headers: sse }),
    lost: /data: \{"type":"RUN_ERROR"[^}]*lost entries of run[^}]*"code":"store-lost"/u,
  },
  'the log': {
    read: ({ url }, run) => fetch(`${url}/api/runs/${run}/events`, { headers: sse }),
    lost: /data: \{"type":"error","error":\{"code":"store-lost"/u,
  },
}

describeRedis('Redis loses its last second together with the owner', () => {
  test('each protocol ends with its error, and says nothing of what another owner writes', async () => {
    const redis = await startLossyRedis()
    onTestFinished(() => redis.close())
    const replies: UpstreamReply[] = []
    const fleet = await startFleet(redis, { a }, (reply) => {
      replies.push(reply)
      reply.say('first ')
    })
    onTestFinished(() => fleet.close())
    const [owner, other] = [await fleet.start(), await fleet.start()]
    const names = Object.keys(wires)
    const runs = new Map<string, string>()
    for (const name of names) runs.set(name, await startRun(owner, 'a', name, { threadId: `t${runs.size}` }))
    await expect.poll(() => replies.length).toBe(3)
    for (const run of runs.values()) await entryOf(fleet.store, run, ({ type }) => type === 'text-delta')
    const readers = names.map((name, i) => reading(wires[name]!.read(other, runs.get(name)!, `t${i}`)))
    for (const read of readers) await expect.poll(() => read.text).toContain('first ')
    await redis.remember()
    for (const reply of replies) reply.say('lost ')
    for (const read of readers) await expect.poll(() => read.text).toContain('lost ')
    await redis.kill()
    await owner.kill()
    await redis.lose()
    for (const [i, read] of readers.entries()) {
      await read.end.catch(() => undefined)
      expect(read.status).toBe(200)
      expect(read.text).toMatch(wires[names[i]!]!.lost)
      expect(read.text.split('first ')).toHaveLength(2)
    }
    // Who asks again reads what is there now.
    const again = reading(wires['the log']!.read(other, runs.get('the log')!, ''))
    await again.end
    expect(again.text).not.toContain('lost ')
    expect(again.text).toContain('"type":"run-end"')
  })
})
