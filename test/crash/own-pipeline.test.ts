/** A server that is killed (SIGKILL) in the middle of a run with its own YAML: whoever goes on with the run, and its conversation, has that text. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endedRun, entryOf, startFleet, startRun } from '../fleet/fleet.ts'
import { startKillableServer } from '../support/killable-server.ts'
import { describeRedis } from '../support/redis.ts'
import type { UpstreamReply } from '../support/upstream.ts'

const yaml = (system: string) => `recover: true
history: server
workflow:
  - id: answer
    type: llm
    config: { model: "up:m", stream: true, system: "${system}" }
`

const systemOf = ({ body }: UpstreamReply) => String(body.messages[0]!.content)

/** Stops behind the first word of each call that is asked to. */
function createAnswer() {
  const cut = new Set<number>()
  return {
    /** Another call, from 1, that does not end. */
    cut,
    async answer(reply: UpstreamReply, n: number): Promise<void> {
      reply.say('One ')
      if (cut.has(n)) return reply.left
      reply.say('two.')
      reply.finish()
    },
  }
}

test('on SQLite, after a restart, though the file has changed meanwhile; so does its conversation, killed again', async () => {
  const { cut, answer } = createAnswer()
  const server = await startKillableServer({ 'desk.yaml': yaml('The file.') }, answer)
  const post = async (body: object): Promise<string> => {
    const response = await fetch(`${server.url}/api/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        agentId: 'desk',
        threadId: 't',
        input: { messages: [{ role: 'user', content: 'Hi' }] },
        ...body,
      }),
    })
    expect(response.status).toBe(202)
    return ((await response.json()) as { id: string }).id
  }
  const of = async (run: string, what = '') => (await fetch(`${server.url}/api/runs/${run}${what}`)).text()
  const statusOf = async (run: string) => (JSON.parse(await of(run)) as { status: string }).status
  const killedIn = async (run: string) => {
    await expect.poll(() => of(run, '/events')).toContain('One ')
    await server.kill()
    writeFileSync(join(server.dir, 'agents', 'desk.yaml'), yaml('The file, later.'))
    await server.start()
    await expect.poll(() => statusOf(run)).toBe('completed')
  }
  cut.add(1).add(3)
  await killedIn(await post({ pipeline: yaml('Its own.') }))
  await killedIn(await post({}))
  const last = await post({ pipeline: null })
  await expect.poll(() => statusOf(last)).toBe('completed')
  expect(server.upstream.requests.map(systemOf)).toEqual([
    ...Array.from({ length: 4 }, () => 'Its own.'),
    'The file, later.',
  ])
})

describeRedis('taken over', (redis) => {
  test('on Redis, by another server: a run, and a fork with another text, whose conversation has it', async () => {
    const { cut, answer } = createAnswer()
    const fleet = await startFleet(redis(), { desk: yaml('The file.') }, answer)
    onTestFinished(() => fleet.close())
    const [a, b] = await Promise.all([fleet.start(), fleet.start()])
    cut.add(2).add(3)
    const begun = (run: string, after: number) =>
      entryOf(fleet.store, run, ({ type, seq }) => type === 'text-delta' && seq > after)
    const source = await startRun(a, 'desk', 'Hi')
    await endedRun(fleet.store, source)
    const run = await startRun(a, 'desk', 'Hi', { pipeline: yaml('Its own.') })
    const forked = await a.post(`/api/runs/${source}/fork`, { at: 1, pipeline: yaml('Of the fork.') })
    const { id: fork, threadId } = (await forked.json()) as { id: string; threadId: string }
    await Promise.all([begun(run, 1), begun(fork, 1)])
    await a.kill()
    for (const each of [run, fork])
      expect((await endedRun(fleet.store, each)).at(-1)).toMatchObject({ outcome: 'completed' })
    await endedRun(fleet.store, await startRun(b, 'desk', 'And now?', { threadId }))
    const told = fleet.upstream.requests.map(systemOf)
    expect([told[0], told.slice(1, 5).toSorted(), told.slice(5)]).toEqual([
      'The file.',
      ['Its own.', 'Its own.', 'Of the fork.', 'Of the fork.'],
      ['Of the fork.'],
    ])
  })
})
