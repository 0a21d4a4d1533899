/** Six places at which the owner of a run is killed while a message is on its way: it counts once, wherever it was. */
import { expect } from 'vitest'
import type { Entry, EntryOf } from '../../src/part/entry.ts'
import type { UpstreamReply } from './upstream.ts'

export const killAgents = {
  long: `recover: true
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]`,
  short: `recover: true
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, maxSteps: 1 } }]`,
  asks: `recover: true
workflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true, tools: [{ name: buy, approval: true }] } }]`,
}

/** Where the servers are. */
export interface KillSite {
  /** Those that live. The first one owns the run. */
  urls(): string[]
  /** Kills the owner. Resolves when others can go on. */
  kill(): Promise<void>
}

/** A model whose answers wait until a test lets them end. The words say how many messages of the user it was told. */
export function createHeldModel() {
  let holds = true
  const reached: { users: number; wake: () => void }[] = []
  const seen: number[] = []
  const gates: (() => void)[] = []
  return {
    async answer(reply: UpstreamReply): Promise<void> {
      const { messages, tools = [] } = reply.body
      const users = messages.filter(({ role }) => role === 'user').length
      seen.push(users)
      for (const each of reached) if (each.users === users) each.wake()
      if (tools.length > 0 && !messages.some(({ role }) => role === 'tool')) {
        reply.call('call_1', 'buy', { what: 'it' })
        return reply.finish('tool_calls')
      }
      reply.say(`Told ${users}.`)
      if (holds) await new Promise<void>((resolve) => void gates.push(resolve))
      reply.finish()
    },
    /** Resolves when the model is told so many messages of the user. */
    told: (users: number) =>
      seen.includes(users)
        ? Promise.resolve()
        : new Promise<void>((resolve) => void reached.push({ users, wake: resolve })),
    /** Lets the answers that wait end, and later ones wait again. */
    goOn: () => gates.splice(0).forEach((open) => open()),
    /** Nothing waits any more. */
    release() {
      holds = false
      for (const open of gates.splice(0)) open()
    },
  }
}

export type HeldModel = ReturnType<typeof createHeldModel>

const post = (url: string, path: string, body: object) =>
  fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

async function entriesAt(url: string, run: string, until?: (entry: Entry) => boolean): Promise<Entry[]> {
  const response = await fetch(`${url}/api/runs/${run}/events`, { headers: { accept: 'text/event-stream' } })
  const entries: Entry[] = []
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of response.body!) {
    text += decoder.decode(piece, { stream: true })
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = text.slice(0, end).replace(/^data: /u, '')
      text = text.slice(end + 1)
      if (!line.startsWith('{')) continue
      const entry = JSON.parse(line) as Entry
      entries.push(entry)
      // Leaving the loop closes the connection.
      if (until?.(entry) === true) return entries
    }
  }
  return entries
}

/** The run is asked, and the message is sent five times with one id, to all servers. */
async function begin(site: KillSite, agentId: string, mode: 'steer' | 'queue' = 'steer'): Promise<string> {
  const [owner] = site.urls()
  const input = { messages: [{ id: 'u1', role: 'user', content: 'Hi' }] }
  const { id } = (await (await post(owner!, '/api/runs', { agentId, input, threadId: 't' })).json()) as { id: string }
  const isBegun = agentId === 'asks' ? 'suspend' : 'text-delta'
  await entriesAt(owner!, id, ({ type }) => type === isBegun)
  const all = site.urls()
  const told = await Promise.all(
    Array.from({ length: 5 }, (_, i) =>
      post(all[i % all.length]!, `/api/runs/${id}/messages`, { id: 'm1', content: 'Shorter', mode }),
    ),
  )
  expect(told.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202])
  const answers = (await Promise.all(told.map((each) => each.json()))) as { duplicate: boolean }[]
  expect(answers.filter(({ duplicate }) => !duplicate)).toHaveLength(1)
  return id
}

const isMessage = (entry: Entry): entry is EntryOf<'message'> => entry.type === 'message'

/** Exactly one message, in this run or in the next, and no third run. */
async function countsOnce(site: KillSite, run: string, where: 'here' | 'next'): Promise<void> {
  const [url] = site.urls()
  const entries = await entriesAt(url!, run)
  expect(entries.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
  const messages = entries.filter(isMessage)
  expect(messages).toMatchObject([{ id: 'm1', content: 'Shorter' }])
  const [{ outcome, runId }] = messages as [EntryOf<'message'>]
  expect(outcome).toBe(where === 'here' ? undefined : 'next')
  if (runId !== undefined) {
    const next = await entriesAt(url!, runId)
    expect(next[0]).toMatchObject({ type: 'run-start', previousRunId: run, input: { messages: [{ id: 'm1' }] } })
    expect(next.at(-1)).toMatchObject({ type: 'run-end', outcome: 'completed' })
    expect(next.filter(({ type }) => type === 'run-end')).toHaveLength(1)
  }
  const { runs } = (await (await fetch(`${url}/api/runs?thread=t`)).json()) as { runs: { id: string }[] }
  expect(runs.map(({ id }) => id)).toEqual(runId === undefined ? [run] : [runId, run])
}

export const killPlaces: Record<string, (site: KillSite, model: HeldModel) => Promise<void>> = {
  async 'before the delivery, during a model call'(site, model) {
    const run = await begin(site, 'long')
    await site.kill()
    model.release()
    await countsOnce(site, run, 'here')
  },
  async 'behind the delivery, before the model has answered it'(site, model) {
    const run = await begin(site, 'long')
    model.goOn()
    await model.told(2)
    await entriesAt(site.urls()[0]!, run, isMessage)
    await site.kill()
    model.release()
    await countsOnce(site, run, 'here')
  },
  async 'before a run that cannot take it ends'(site, model) {
    const run = await begin(site, 'short')
    await site.kill()
    model.release()
    await countsOnce(site, run, 'next')
  },
  async 'when the next run has begun with it'(site, model) {
    const run = await begin(site, 'short')
    model.goOn()
    await model.told(2)
    await site.kill()
    model.release()
    await countsOnce(site, run, 'next')
  },
  async 'while it waits for a run of its own'(site, model) {
    const run = await begin(site, 'long', 'queue')
    await site.kill()
    model.release()
    await countsOnce(site, run, 'next')
  },
  async 'while the run waits for an approval'(site, model) {
    model.release()
    const run = await begin(site, 'asks')
    await site.kill()
    const [url] = site.urls()
    const { requests } = (await (await fetch(`${url}/api/runs/${run}`)).json()) as { requests: { requestId: string }[] }
    await post(url!, `/api/runs/${run}/requests/${requests[0]!.requestId}`, { approved: true })
    await countsOnce(site, run, 'here')
  },
}
