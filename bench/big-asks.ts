/** Asks a kept store of `big-store.ts` each query some times, through a checkout. Arguments: its root, the file, and the names
 * of queries, if not all are asked. Prints the medians as JSON. */
import { pathToFileURL } from 'node:url'
import type { Store } from '../src/part/log.ts'
import type { StatsQuery } from '../src/part/stats.ts'
import { lastStart } from './big-store.ts'

export interface Asked {
  name: string
  title: string
  ms: number
  /** Of the process, all of its threads. */
  cpu: number
  /** The longest time for which the event loop did nothing else. */
  blocked: number
}

type Sources = Pick<Store, 'log' | 'runs' | 'records'>

const [, , root, file, ...only] = process.argv
const load = async <T>(path: string) => (await import(pathToFileURL(`${root}/src/${path}.ts`).href)) as T
const { sqliteStore } = await load<{ sqliteStore(path: string): Store }>('store/sqlite/store')
const { readStats } = await load<{ readStats(store: Sources, query: StatsQuery): Promise<unknown> }>('record/stats')
const { readWindow } = await load<{ readWindow(store: Sources, query: StatsQuery): Promise<unknown> }>(
  'record/window-stats',
)

const store = sqliteStore(file!)
const records = store.records!
await records.settle()
const until = lastStart + 30_000
const hour = 3_600_000

/** The documented query that finds slow calls. */
const slowCalls = `SELECT c.agent_id, c.event_id, c.tool_name, r.timestamp - c.timestamp AS ms
  FROM agent_stream_events c
  JOIN agent_stream_events r ON r.agent_id = c.agent_id AND r.event_id = c.event_id AND r.event_type = 'tool-result'
  WHERE c.event_type = 'tool-call' AND r.timestamp - c.timestamp > 5000 ORDER BY ms DESC`

async function window(since: number): Promise<unknown> {
  return Promise.all([readStats(store, { since, until }), readWindow(store, { since, until })])
}

type Question = [name: string, title: string, times: number, ask: () => Promise<unknown>]
const questions: Question[] = [
  ['stats-1h', '`/api/stats?window=1h`', 5, () => window(until - hour)],
  ['stats-60d', 'statistics of 60 days', 3, () => readStats(store, { since: until - 60 * 24 * hour, until })],
  ['list', 'the list of runs', 20, () => store.runs.list()],
  // Fewer than a page.
  ['list-since', 'the list, `since=` five minutes', 20, () => store.runs.list({ since: until - hour / 12 })],
  ['list-q', 'the list, `q=` a rare word', 5, () => store.runs.list({ search: 'rareword' })],
  [
    'list-q-agent',
    'the list, `q=` a common word of a rare agent',
    5,
    () => store.runs.list({ search: 'common', agent: 'rare' }),
  ],
  ['list-q-none', 'the list, `q=` a word that is nowhere', 5, () => store.runs.list({ search: 'nowhere' })],
  [
    'search-agent',
    '`/api/search`, a common word of a rare agent',
    5,
    () => records.search({ q: 'common', agent: 'rare' }),
  ],
  [
    'search-thread',
    '`/api/search`, a common word of a thread',
    5,
    () => records.search({ q: 'common', threadId: 'thread_30' }),
  ],
  ['slow-calls', 'the join that finds slow calls', 1, () => records.query(slowCalls)],
]

const median = (all: number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!

/** How long the event loop is away at most. */
function watch(): () => number {
  let last = performance.now()
  let longest = 0
  let more = true
  const look = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (more) setTimeout(look, 1)
  }
  setTimeout(look, 1)
  return () => {
    more = false
    // A timer of 1 ms.
    return Math.max(0, Math.max(longest, performance.now() - last) - 1.2)
  }
}

const found: Asked[] = []
for (const [name, title, times, ask] of questions) {
  if (only.length > 0 && !only.includes(name)) continue
  // The first reads the file, and may keep what hours come to.
  if (times > 1) await ask()
  await records.settle()
  const [ms, cpu]: [number[], number[]] = [[], []]
  for (let i = 0; i < times; i++) {
    const used = process.cpuUsage()
    const began = performance.now()
    await ask()
    ms.push(performance.now() - began)
    const { user, system } = process.cpuUsage(used)
    cpu.push((user + system) / 1000)
  }
  const seen = watch()
  await new Promise((done) => setTimeout(done, 5))
  await ask()
  found.push({ name, title, ms: median(ms), cpu: median(cpu), blocked: seen() })
}
await store.close()
process.stdout.write(JSON.stringify(found))
