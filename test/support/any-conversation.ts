/**
 * A conversation made from a seed: turns, rounds of tools, approvals, tools of the client, failures, messages into running turns, stops, summaries,
 * handles, a second model, deaths of the runtime, and forks. Its model server refuses what services refuse. What must hold of all is checked.
 */
import { setImmediate } from 'node:timers/promises'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Entry, EntryOf } from '../../src/part/entry.ts'
import { latch, type Latch } from '../../src/models/testing/scripted-model.ts'
import { readEverything } from '../hostile/read-everything.ts'
import { entriesOf, only } from './engine.ts'
import { readAll } from './going-on.ts'
import { startMortalEngine } from './mortal-engine.ts'
import { randomOf } from './random.ts'
import { startStrictServer, strictProtocols, type AskedModel, type StrictAnswer } from './strict-model-server.ts'

const mostActions = 14
const mostCalls = 40
/** ms after which a conversation hangs. */
const patience = 60_000

const isSummary = ({ system }: AskedModel) => system.startsWith('You shorten')
const summaryStart = 'The conversation is longer than what you can be told.'
const down = { status: 500, body: { error: { message: 'down' } } }

/** A message into a running turn. */
interface Said {
  id: string
  run: string
  isBack: boolean
}

/** Resolves with how often things happened. Rejects with what must not be, and with what led to it. */
export async function converse(seed: number): Promise<Record<string, number>> {
  const random = randomOf(seed)
  const below = (n: number) => Math.floor(random() * n)
  const chance = (share: number) => random() < share
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!

  const window = pick([5000, 8000, 16_000])
  const context = pick([`context: { window: ${window}, keep: ${window / 4} }`, 'context: {}', ''])
  const protocols = [pick(strictProtocols), pick(strictProtocols)] as const
  const maxSteps = pick([2, 5, 30])
  const isRestless = chance(0.7)
  const turns = 1 + below(4)
  const trace = [`seed ${seed}: ${protocols.join(', ')}, ${context}, maxSteps ${maxSteps}`]
  const count: Record<string, number> = {}
  const note = (what: string, times = 1) => void (count[what] = (count[what] ?? 0) + times)

  const said = new Map<string, Said>()
  /** How often the calls of tools have run. */
  const ran = new Map<string, number>()
  const pending: Promise<unknown>[] = []
  let messages = 0
  let actions = 0
  let calls = 0
  /** The run that the user looks at. */
  let current: string | undefined

  const server = await startStrictServer({
    ...(context !== '' && { window }),
    async answer(asked) {
      await moment()
      if (isSummary(asked)) return chance(0.1) ? down : { text: 'They looked at many things.' }
      return chance(asked.model === 'm' ? 0.08 : 0.02) ? down : answerOf(asked)
    },
  })
  const tool = (execute: (tag: string) => string) => ({
    parameters: z.looseObject({ tag: z.string() }),
    async execute({ tag }: { tag: string }) {
      ran.set(tag, (ran.get(tag) ?? 0) + 1)
      await moment()
      return execute(tag)
    },
  })
  const mortal = await startMortalEngine({
    agents: {
      a: `
recover: true
history: server
workflow:
  - id: answer
    type: llm
    config:
      model: ["box:m", "bag:n"]
      stream: true
      reasoning: low
      retries: 0
      inline: 4k
      maxSteps: ${maxSteps}
      system: "You look."
      tools: [look, page, fail, { name: buy, approval: true }, { name: ask, client: true, description: Asks, parameters: { type: object } }]
      ${context}`,
    },
    tools: {
      look: tool((tag) => `R:${tag} seen`),
      page: tool((tag) => `R:${tag} ${'Entry on a shelf, and nobody has asked for it. '.repeat(20 + below(300))}`),
      buy: tool((tag) => `R:${tag} bought`),
      fail: tool(() => {
        throw new Error('It is broken.')
      }),
    },
    models: {
      endpoints: [
        { name: 'box', baseURL: server.baseURL, protocol: protocols[0] },
        { name: 'bag', baseURL: server.baseURL, protocol: protocols[1] },
      ],
    },
  })
  const { living } = mortal
  if (chance(0.6)) mortal.dieBehind(1 + below(60))

  function answerOf({ n, turns: told, tools }: AskedModel): StrictAnswer {
    const thinks = chance(0.5) && { thinks: 'Hm.' }
    const text = [`A${n} `, held(), 'and more.']
    if (calls >= mostCalls || chance(0.35)) return { ...thinks, text }
    const results = told.flatMap((turn) => turn.results)
    const handles = results.flatMap((result) => /kept as (res_\w+)/u.exec(result.text)?.[1] ?? [])
    const made = Array.from({ length: 1 + below(chance(0.2) ? 12 : 3) }, (_, i) => {
      calls++
      if (handles.length > 0 && tools.includes('readResult') && chance(0.3))
        return { name: 'readResult', input: { handle: pick(handles) } }
      const name = pick(['look', 'look', 'page', 'page', 'fail', pick(['buy', 'ask', 'look'])])
      return { name, input: { tag: `t${n}x${i}` } }
    })
    return { ...thinks, ...(chance(0.5) && { text }), calls: made }
  }

  /** Holds an answer in its middle until something may have happened. */
  function held(): Latch {
    const gate = latch()
    return { ...gate, arrive: () => void moment().then(gate.open) }
  }

  /** Something that a user does meanwhile, or nothing. */
  async function moment(): Promise<void> {
    if (isRestless && current !== undefined && actions < mostActions && chance(0.35)) {
      actions++
      const what = below(15)
      if (what < 9) await tell(current, chance(0.75) ? 'steer' : 'queue')
      else if (what < 11 && said.size > 0) await tellAgain(pick([...said.values()]))
      else if (what < 13 && said.size > 0) await takeBack(pick([...said.values()]))
      else if (what === 13) stop(current)
      else if (what === 14) mortal.die()
    }
    // The owner may have read its inbox by now, or not.
    for (let ticks = below(4); ticks > 0; ticks--) await setImmediate()
  }

  async function tell(run: string, mode: 'steer' | 'queue'): Promise<void> {
    const id = `m${++messages}`
    const message: Said = { id, run, isBack: false }
    said.set(id, message)
    await post(message, mode, () => said.delete(id))
  }

  async function tellAgain(message: Said): Promise<void> {
    await post(message, 'steer', () => undefined)
  }

  async function post({ id, run }: Said, mode: 'steer' | 'queue', onRefused: () => void): Promise<void> {
    trace.push(`tell ${id} to ${run}, ${mode}`)
    const sent = living(({ runtime }) => runtime.tell(run, { id, content: id.toUpperCase(), mode })).then(
      ({ duplicate }) => note(duplicate ? 'told again' : `told, ${mode}`),
      ({ code }: { code?: string }) => {
        onRefused()
        expect(code).toMatch(/^(?:run-ended|too-many-messages)$/u)
        note(code!)
      },
    )
    pending.push(sent)
    if (chance(0.7)) await Promise.race([sent, mortal.died()])
  }

  async function takeBack(message: Said): Promise<void> {
    const { id, run } = message
    trace.push(`take back ${id}`)
    const taken = living(({ runtime }) => runtime.takeBack(run, id)).then(
      () => {
        message.isBack = true
        note('taken back')
      },
      ({ code }: { code?: string }) => expect(code).toMatch(/^(?:message-delivered|unknown-message)$/u),
    )
    pending.push(taken)
    await Promise.race([taken, mortal.died()])
  }

  function stop(run: string): void {
    trace.push(`stop ${run}`)
    note('stopped')
    pending.push(living(({ runtime }) => runtime.stop(run)))
  }

  /** Follows a run to its end. What it asks is answered; or, if it `leaves`, the conversation goes on without. */
  async function finish(id: string, leaves: boolean): Promise<void> {
    for (;;) {
      const { outcome } = await living(async ({ runtime }) => (await runtime.open(id))!.result)
      if (outcome === 'moved') continue
      note(outcome)
      if (outcome !== 'suspended') return
      await moment()
      if (leaves) return
      const entries = await living((engine) => readAll(engine, id))
      const closed = new Set(only(entries, 'response').map(({ requestId }) => requestId))
      const open = only(entries, 'request').filter(({ requestId }) => !closed.has(requestId))
      if (open.length === 0) continue
      const { requestId, kind, input } = pick(open)
      const output = `R:${(input as { tag: string }).tag} said`
      const reply = kind === 'approval' ? { kind, approved: chance(0.7) } : { kind: 'tool' as const, output }
      await living(({ runtime }) => runtime.answer(id, requestId, reply))
    }
  }

  /** What a client sees that reads a run from its start, and goes on where it was when the runtime dies. */
  async function follow(id: string): Promise<Entry[]> {
    const seen: Entry[] = []
    while (seen.at(-1)?.type !== 'run-end') {
      await living(async ({ store }) => {
        const leave = new AbortController()
        void mortal.died().then(() => leave.abort())
        for await (const batch of store.log.read(id, { after: seen.at(-1)?.seq ?? 0, signal: leave.signal })) {
          if (leave.signal.aborted) return
          seen.push(...batch)
        }
      })
    }
    return seen
  }

  /** Until nothing of the thread goes on. Resolves with its runs, in order. */
  async function settled(): Promise<string[]> {
    for (let quiet = 0; ;) {
      await Promise.all(pending)
      const rows = await living(({ store }) => store.runs.list({ limit: 1000 }))
      const open = rows.filter(({ status }) => status === 'running' || status === 'suspended')
      quiet = open.length === 0 ? quiet + 1 : 0
      // The run of a message that came with the end begins behind it.
      if (quiet > 5) return rows.map(({ id }) => id).toReversed()
      for (const { id } of open) await finish(id, false)
      await setImmediate()
    }
  }

  async function story(): Promise<void> {
    const followed = new Map<string, Promise<Entry[]>>()
    for (let turn = 1; turn <= turns; turn++) {
      const input = { messages: [{ role: 'user', id: `u${turn}`, content: `U${turn}` }] }
      const { id } = await living(({ runtime }) => runtime.start('a', input, { threadId: 't', turnKey: `turn${turn}` }))
      trace.push(`turn ${turn}: ${id}`)
      current = id
      followed.set(id, follow(id))
      await finish(id, chance(0.2))
    }
    const runs = await settled()
    current = undefined
    mortal.spare()
    const { store, runtime } = mortal.now
    const logs = new Map<string, Entry[]>()
    for (const id of runs) logs.set(id, await checked(id))
    for (const [id, seen] of followed) expect(await seen, `what a client saw of ${id}`).toEqual(logs.get(id))
    for (const message of said.values()) checkMessage(message, logs)
    const all = wordsIn(logs)
    for (const asked of server.requests) checkTold(asked, all)
    for (const [tag, times] of ran) expect(times, `runs of ${tag}`).toBe(1)
    for (let forks = 0; forks < 2; forks++) {
      const from = pick(runs)
      const at = 1 + below(logs.get(from)!.length)
      const forked = await runtime
        .fork(from, { at })
        .catch(({ code }: { code?: string }) => expect(code).toBe('bad-fork'))
      if (typeof forked !== 'object') continue
      trace.push(`fork ${from} at ${at}: ${forked.id}`)
      note('forked')
      await finish(forked.id, false)
      await checked(forked.id)
    }
    const refused = server.refused.filter(({ status }) => status === 400)
    expect(refused.filter(({ why }) => why !== 'too long')).toEqual([])
    note('too long', refused.length)
    note('requests', server.requests.length)
    note('died', mortal.deaths)

    async function checked(id: string): Promise<Entry[]> {
      const entries = await entriesOf(store, id)
      await readEverything(entries)
      expect(only(entries, 'run-end')).toHaveLength(1)
      const read = only(entries, 'tool-result').filter(({ toolName }) => toolName === 'readResult')
      expect(read.filter(({ isError, outcome }) => isError && outcome === undefined)).toEqual([])
      note('read', read.length)
      note('summaries', only(entries, 'summarized').length)
      return entries
    }
  }

  let timer: NodeJS.Timeout | undefined
  const hangs = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('it hangs')), patience)
  })
  try {
    await Promise.race([story(), hangs])
    return count
  } catch (error) {
    throw new Error(`${trace.join('\n')}\n${(error as Error).stack}`, { cause: error })
  } finally {
    clearTimeout(timer)
    await mortal.close()
    await server.close()
  }
}

/** A message that was accepted is told once, or was taken back, or was dropped by a stop. */
function checkMessage({ id, run, isBack }: Said, logs: ReadonlyMap<string, readonly Entry[]>): void {
  const entries = [...logs.values()].flatMap((each) => only(each, 'message')).filter((each) => each.id === id)
  const begins = [...logs].filter(([, entry]) => askedIn(entry).some((each) => each.id === id)).map(([each]) => each)
  const [{ outcome, runId } = {}] = entries
  const what = `message ${id} to ${run}: ${entries.length} entries, ${outcome}, begins ${begins.join()}`
  expect(entries.length, what).toBeLessThanOrEqual(1)
  if (outcome === 'next') expect(begins, what).toEqual([runId])
  const told = begins.length + Number(entries.length > 0 && outcome === undefined)
  const end = logs.get(run)!.at(-1) as EntryOf<'run-end'>
  const mayBeDropped = end.outcome === 'aborted' || outcome === 'withdrawn'
  expect(told, what).toBeLessThanOrEqual(isBack ? 0 : 1)
  if (!isBack && !mayBeDropped) expect(told, what).toBe(1)
}

function askedIn([first]: readonly Entry[]): { id?: string; content: string }[] {
  const { messages } = (first as EntryOf<'run-start'>).input
  return messages as { id?: string; content: string }[]
}

/** What users have said in the runs of a thread, in order. */
function wordsIn(logs: ReadonlyMap<string, readonly Entry[]>): string[] {
  return [...logs.values()].flatMap((entries) => [
    ...askedIn(entries).map(({ content }) => content),
    ...only(entries, 'message').flatMap(({ outcome, content }) => (outcome === undefined ? [content as string] : [])),
  ])
}

/** A model is told the first words, and the newest ones without a gap; and of each call its own result. */
function checkTold(asked: AskedModel, all: readonly string[]): void {
  if (isSummary(asked)) return
  const users = asked.turns.filter(({ role }) => role === 'user').map(({ text }) => text)
  const [first, ...rest] = users.filter((text) => !text.startsWith(summaryStart))
  const from = rest.length === 0 ? 0 : all.indexOf(rest[0]!)
  const what = `request ${asked.n}, of ${all.join()}`
  expect([first, ...rest], what).toEqual([all[0], ...all.slice(from, from + rest.length)])
  const made = asked.turns.flatMap(({ calls }) => calls)
  const tags = new Map(made.map(({ id, input }) => [id, (input as { tag?: string }).tag]))
  for (const { id, text } of asked.turns.flatMap(({ results }) => results)) {
    const tag = /R:(\w+)/u.exec(text)?.[1]
    if (tag !== undefined && tags.get(id) !== undefined) expect(tag, `the result of ${id}`).toBe(tags.get(id))
  }
}
