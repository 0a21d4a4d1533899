/**
 * A store as after a busy hour: the agents of this repository, hundreds of recorded runs in threads, requests that wait, failures, forks, messages
 * into running turns. Filled in about two seconds, without models.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createGrammar } from '../../src/fold/grammar.ts'
import type { Entry } from '../../src/part/entry.ts'
import type { Message } from '../../src/part/message.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { openDatabase } from '../../src/store/sqlite/schema.ts'

export interface FullStore {
  /** The folder of the agents, which has one broken file. */
  dir: string
  data: string
  /** Ids of runs to look at. */
  runs: Record<'chat' | 'team' | 'failed' | 'waiting' | 'forked' | 'steered' | 'long', string>
  thread: string
  remove(): void
}

const golden = Object.fromEntries(
  readdirSync('src/wire/golden')
    .filter((name) => name.endsWith('.ndjson'))
    .map((name) => {
      const lines = readFileSync(join('src/wire/golden', name), 'utf8').trim().split('\n')
      return [name.slice(0, -'.ndjson'.length), lines.map((line) => JSON.parse(line) as Entry)] as const
    }),
)

/** How often each of the recorded runs comes. */
const mix = (
  'plain-text server-tool reasoning plain-text router agent-tools parallel-answers long-outputs plain-text ' +
  'error-midway server-tool agent-tool max-steps abort-midway reset non-streaming cli-agent failing-branch agent-handoff budget-exceeded'
).split(' ')
const waiting = ['approval', 'client-tool', 'agent-approval', 'role-approval', 'client-tools']

/** Words of every length and kind. */
const questions = [
  'What is 12*7?',
  'Where is my order 4711? It should have come on Tuesday, and nobody at your shop has answered my letters since then.',
  'Warum ist der Himmel blau?',
  'Compare the three offers in the table below and tell me which of them is cheapest over five years',
  'https://example.com/a/very/long/address/that/has/no/place/to/break/and/goes/on/and/on?with=parameters&and=more',
  'متى يصل طلبي؟',
  '请把这段文字翻译成英文，并保持语气。',
  'Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen'.repeat(3),
  'Refund',
  '👩‍🚀 Plan a week in Rome for two people who like trains',
]

const trip = `metadata: { name: Trip planner, description: Plans a trip for a city and a number of days }
input:
  type: object
  required: [city]
  properties:
    city: { type: string, description: Where to }
    days: { type: integer, minimum: 1, maximum: 30, default: 3 }
    pace: { type: string, enum: [slow, fast] }
workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, messages: $input.messages } }
`
const steered = `metadata: { name: Researcher who listens }
onBusy: steer
workflow:
  - { id: answer, type: llm, config: { model: "demo:assistant", stream: true, messages: $input.messages, tools: [calculator] } }
`
const broken = `workflow:
  - { id: a, type: llm, config: { model: "demo:assistant", tools: [calculater] } }
`

/** A fixed sequence of numbers from 0 to 1: the same store at each call. */
function createRandom(): () => number {
  let state = 7
  return () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647
}

/** `now`: epoch ms, when the last run ends. */
export async function createFullStore(now = Date.now(), count = 300): Promise<FullStore> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-full-'))
  const dir = join(folder, 'agents')
  const data = join(folder, 'data')
  cpSync(resolve('agents'), dir, { recursive: true })
  for (const [name, text] of Object.entries({ trip, steered, broken })) writeFileSync(join(dir, `${name}.yaml`), text)
  writeFileSync(join(dir, 'millrace.config.js'), 'export default { server: { edit: true, graceMs: 0 } }')
  mkdirSync(data)
  openDatabase(join(data, 'millrace.db'), { busyTimeout: 5000 }).close()
  const store = sqliteStore(join(data, 'millrace.db'))
  const random = createRandom()
  const agents = readdirSync(dir).flatMap((name) => (/^(?!broken).*\.yaml$/u.test(name) ? [name.slice(0, -5)] : []))
  const lastOf = new Map<string, string>()
  let made = 0

  const record = async (name: string, from: number, more: Partial<Told> = {}): Promise<string> => {
    const id = more.id ?? `run_${String(made).padStart(3, '0')}${'0123456789abcdef'.repeat(2).slice(0, 21)}`
    const threadId = more.threadId ?? `thread_${made % 23}`
    const before = lastOf.get(threadId)
    const told = {
      ...more,
      id,
      threadId,
      agent: more.agent ?? agents[Math.floor(random() * agents.length)]!,
      asked: more.asked ?? questions[made % questions.length]!,
      ...(before !== undefined && { previousRunId: before }),
    }
    made++
    lastOf.set(threadId, id)
    const entries = retold(more.entries ?? golden[name]!, from, told, random)
    const grammar = createGrammar()
    const faults = entries.map((entry) => grammar.check(entry)).filter((fault) => fault !== undefined)
    if (faults.length > 0) throw new Error(`${name}: ${faults.join('\n')}`)
    await store.log.append(id, 1, entries)
    return id
  }

  for (let i = 0; i < count; i++) await record(mix[i % mix.length]!, now - (count - i) * 11_000 - 20_000)
  for (let i = 0; i < 14; i++) {
    const name = waiting[i % waiting.length]!
    await record(name, now - i * 400_000 - 120_000, { entries: untilSuspend(golden[name]!), threadId: `open_${i}` })
  }
  const thread = 'thread_warehouse'
  const chat = await record('server-tool', now - 50_000, { threadId: thread, agent: 'assistant' })
  const team = await record('agent-tools', now - 40_000, { threadId: thread, agent: 'research-team' })
  const failed = await record('error-midway', now - 30_000, { threadId: thread, agent: 'assistant' })
  const approval = { entries: untilSuspend(golden['approval']!), threadId: thread, agent: 'approve-first' }
  const open = await record('approval', now - 20_000, approval)
  const told = await record('steered', now - 15_000, {
    entries: withMessage(golden['server-tool']!),
    agent: 'steered',
    threadId: 'thread_steered',
  })
  const long = await record('long', now - 14_000, { entries: longRun(), agent: 'panel', threadId: 'thread_long' })
  const source = retold(
    golden['server-tool']!,
    now - 900_000,
    { id: 'run_source', threadId: 'thread_fork', agent: 'assistant', asked: questions[0]! },
    random,
  )
  await store.log.append('run_source', 1, source)
  const forked = 'run_forked'
  await store.log.append(forked, 1, forkOf(source, forked, now - 10_000))
  await store.records?.settle()
  await store.close()
  return {
    dir,
    data,
    runs: { chat, team, failed, waiting: open, forked, steered: told, long },
    thread,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

interface Told {
  id: string
  threadId: string
  agent: string
  asked: string
  previousRunId?: string
  entries?: readonly Entry[]
}

const used = { inputTokens: 2000, cachedInputTokens: 1640, outputTokens: 130, totalTokens: 2130 }

/** A recorded run under another id, at another time, with its costs. */
function retold(entries: readonly Entry[], from: number, told: Told, random: () => number): Entry[] {
  let timestamp = from
  const { id: runId, threadId, agent, asked, previousRunId } = told
  return entries.map((entry): Entry => {
    timestamp += Math.ceil(random() ** 4 * 600)
    const at = { ...entry, timestamp }
    switch (at.type) {
      case 'run-start': {
        const messages: Message[] = [{ role: 'user', content: asked }]
        return { ...at, runId, threadId, agent, input: { messages }, ...(previousRunId && { previousRunId }) }
      }
      case 'usage':
        return { ...at, usage: { ...at.usage, ...used }, cost: random() ** 3 * 0.02 }
      case 'step-finish':
        return { ...at, ...(at.usage && { usage: { ...at.usage, ...used } }) }
      case 'request':
        return { ...at, deadline: timestamp + 86_400_000 }
      case 'message':
        return { ...at, sentAt: timestamp - 2500 }
      case 'run-end':
        return { ...at, cost: random() ** 3 * 0.05 }
      default:
        return at
    }
  })
}

function untilSuspend(entries: readonly Entry[]): Entry[] {
  return entries.slice(0, entries.findIndex(({ type }) => type === 'suspend') + 1)
}

/** Somebody has sent a message while a tool ran. */
function withMessage(entries: readonly Entry[]): Entry[] {
  const at = entries.findIndex(({ step }) => step === 'main/answer/5')
  const by = { id: 'ann', name: 'Ann' }
  const content = 'Only the last year, please, and leave out what was sent back'
  const message = { type: 'message', step: 'main/answer', id: 'msg_1', content, protocol: 'api', by, sentAt: 0 }
  return [...entries.slice(0, at), message as Entry, ...entries.slice(at)].map((entry, i) => ({ ...entry, seq: i + 1 }))
}

/** As a fork before the second model call goes on, some minutes later. */
function forkOf(source: readonly Entry[], id: string, now: number): Entry[] {
  const seq = source.findIndex(({ step }) => step === 'main/answer/5')
  const shift = now - source[seq]!.timestamp
  const start = { ...source[0]!, runId: id, forkedFrom: { runId: 'run_source', seq, at: now } } as Entry
  const forked = {
    step: '',
    timestamp: now,
    type: 'warning',
    code: 'forked',
    message: 'Forked from run_source.',
  } as Entry
  const suspend = { step: '', timestamp: now, type: 'suspend', requests: [] } as unknown as Entry
  const resume = { step: '', timestamp: now, type: 'resume', protocol: 'api' } as Entry
  const rest = source.slice(seq).map((entry) => ({ ...entry, timestamp: entry.timestamp + shift }))
  return [start, ...source.slice(1, seq), forked, suspend, resume, ...rest].map((entry, i) => ({
    ...entry,
    seq: i + 1,
  }))
}

/** More steps than a screen has lines. */
function longRun(): Entry[] {
  const entries: Entry[] = [golden['plain-text']![0]!]
  const add = (step: string, part: object) =>
    void entries.push({ seq: entries.length + 1, timestamp: 0, step, ...part } as Entry)
  add('main/all', { type: 'step-start', stepType: 'loop', kind: 'container', attempt: 1 })
  for (let i = 0; i < 120; i++) {
    add(`main/all/${i}`, { type: 'step-start', stepType: 'code', kind: 'code', attempt: 1 })
    add(`main/all/${i}`, { type: 'step-finish', duration: 1 })
  }
  add('main/all', { type: 'step-finish', duration: 120 })
  add('', { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } })
  return entries
}
