/**
 * Totals over the runs of a time. What closed hours come to is kept (`hours.ts`); all other hours are read row by row, by time. Runs that have not
 * ended are never kept. It runs in a thread: see `read-thread.ts`.
 */
import { timeInTool } from './views.ts'
import type { DatabaseSync } from 'node:sqlite'
import type { OwnerFilter } from '../../part/principal.ts'
import type { StatsQuery, Totals, UsageOf } from '../../part/stats.ts'
import {
  addSums,
  Facts,
  hourLength,
  noSums,
  reportsAt,
  percentilesOf,
  toUsageSum,
  type KeptFacts,
  type TimeKind,
} from './facts.ts'

/** The facts of an hour, by whom. `changes`: how often the hour had changed when they were read. */
export interface HourFacts {
  hour: number
  changes: number
  rows: ({ tenant: string; owner: string; agent: string } & KeptFacts)[]
}

export interface TotalsReply {
  totals: Totals
  /** Whether there were closed hours that are not kept. */
  isPartlyKept: boolean
}

export interface TotalsReader {
  /** Hours that end before `closed` may be kept. */
  read(query: StatsQuery & { closed: number }): TotalsReply
  /** Some closed hours of a time that are not kept, the last first. */
  hours(query: { since: number; until: number; most: number }): HourFacts[]
}

const ended = `status NOT IN ('running', 'suspended')`
const mostRows = 1000

/** The parts of a row's names. */
interface Place {
  tenant: string
  owner: string
  agent: string
}

type Found = (place: Place) => Facts
type Row = (string | number | null)[]
type KeptRow = [hour: number, agent: string, names: string, numbers: Uint8Array]

export function createTotals(db: DatabaseSync): TotalsReader {
  const arrays = { returnArrays: true }
  /** The rows of a time, of everybody or of an owner or a tenant. */
  const ofTime = (from: string, time: string) =>
    db.prepare(
      `${from} ${time} >= ?1 AND ${time} < ?2 AND (?3 IS NULL OR r.tenant = ?3) AND (?4 IS NULL OR r.owner = ?4)`,
      arrays,
    )
  const runRows = (where: string) =>
    ofTime(
      `SELECT r.tenant, r.owner, r.agent, r.status, r.error ->> '$.code', r.ended_at - r.started_at
       FROM runs r WHERE ${where} AND`,
      'r.started_at',
    )
  const endedRuns = runRows(`+r.${ended}`)
  const openRuns = runRows(`r.status IN ('running', 'suspended')`)
  // What a fork shares is counted once, where it happened.
  const own = `LEFT JOIN forks f ON f.run = r.id WHERE`
  const usage = ofTime(
    `SELECT r.tenant, r.owner, a.agent, u.model, r.thread_id,
       u.step > 0 AND NOT EXISTS (SELECT 1 FROM indexed_usage p WHERE p.run = u.run AND p.step = u.step AND p.seq < u.seq),
       u.input_tokens, u.output_tokens, u.cached_input_tokens, u.reasoning_tokens, u.source = 'estimated', u.cost
     FROM indexed_usage u JOIN runs r ON r.number = u.run JOIN indexed_agents a ON a.number = u.agent
     ${own} u.seq > coalesce(f.seq, 0) AND`,
    'u.timestamp',
  )
  const modelCalls = ofTime(
    `SELECT r.tenant, r.owner, a.agent, m.model, s.duration, m.first_token_at - s.started_at
     FROM indexed_steps s JOIN indexed_model_calls m ON m.run = s.run AND m.seq = s.seq
       JOIN runs r ON r.number = s.run JOIN indexed_agents a ON a.number = s.agent
     ${own} s.kind = 'model-call' AND s.seq > coalesce(f.seq, 0) AND`,
    's.started_at',
  )
  const toolCalls = ofTime(
    `SELECT r.tenant, r.owner, a.agent, c.tool_name, ${timeInTool}
     FROM indexed_tool_calls c JOIN runs r ON r.number = c.run JOIN indexed_agents a ON a.number = c.agent
       LEFT JOIN indexed_steps s ON s.run = c.run AND s.seq = c.step
     ${own} c.seq > coalesce(f.seq, 0) AND`,
    'c.called_at',
  )
  /** The first of these times at or behind one. */
  const nextTime = db.prepare(
    `SELECT min(at) FROM (
       SELECT min(started_at) AS at FROM runs WHERE started_at >= ?1
       UNION ALL SELECT min(timestamp) FROM indexed_usage WHERE timestamp >= ?1
       UNION ALL SELECT min(started_at) FROM indexed_steps WHERE kind = 'model-call' AND started_at >= ?1
       UNION ALL SELECT min(called_at) FROM indexed_tool_calls WHERE called_at >= ?1)`,
    arrays,
  )
  const state = db.prepare('SELECT hour, changes, kept FROM indexed_hours WHERE hour >= ? AND hour < ?', arrays)
  const kept = db.prepare(
    `SELECT hour, agent, names, numbers FROM indexed_hour_facts
     WHERE hour >= ?1 AND hour < ?2 AND (?3 IS NULL OR tenant = ?3) AND (?4 IS NULL OR owner = ?4)`,
    arrays,
  )

  /** `now`: runs that have not ended. */
  function readRows(from: number, to: number, at: Found, { tenant, owner }: OwnerFilter = {}, isOpen = false): void {
    const of = [from, to, tenant ?? null, owner ?? null]
    const each = (rows: Iterable<unknown>, add: (facts: Facts, row: Row) => void) => {
      for (const [tenant, owner, agent, ...row] of rows as Iterable<Row>)
        add(at({ tenant: String(tenant), owner: String(owner), agent: String(agent) }), row)
    }
    each((isOpen ? openRuns : endedRuns).iterate(...of), (facts, [status, code, took]) => {
      facts.count('status', String(status))
      if (code != null) facts.count('error', String(code))
      addTime(facts, 'run-took', 'all', took)
    })
    if (isOpen) return
    each(usage.iterate(...of), (facts, [model, thread, isCall, input, output, cached, reasoning, estimated, cost]) => {
      const tokens = [input, output, cached, reasoning].map((count) => (count == null ? Number.NaN : Number(count)))
      const sums = [Number(isCall), 1, ...tokens, Number(estimated), Number(cost ?? 0), cost == null ? 1 : 0]
      facts.use('model-used', String(model), sums)
      facts.use('thread-used', String(thread), sums)
    })
    each(modelCalls.iterate(...of), (facts, [model, took, first]) => {
      addTime(facts, 'model-took', model, took)
      addTime(facts, 'model-first', model, first)
    })
    each(toolCalls.iterate(...of), (facts, [tool, took]) => addTime(facts, 'tool-took', tool, took))
  }

  /** What `read` and `hours` see is of one moment. */
  function atOnce<T>(work: () => T): T {
    db.exec('BEGIN')
    try {
      return work()
    } finally {
      db.exec('COMMIT')
    }
  }

  function read(query: StatsQuery & { closed: number }): TotalsReply {
    const { since, until, agent, closed, tenant = null, owner = null } = query
    const total = new Facts()
    const byAgent = new Map<string, Facts>()
    const byDay = new Map<string, Facts>()
    const of = (all: Map<string, Facts>, name: string) => {
      let facts = all.get(name)
      if (facts === undefined) all.set(name, (facts = new Facts()))
      return facts
    }
    const listsOf = (time: number, name: string) => [
      of(byAgent, name),
      of(byDay, new Date(time).toISOString().slice(0, 10)),
    ]
    const addRows = (from: number, to: number, isOpen = false) => {
      // A day at a time: what it comes to is of that day. A time that somebody asks for may be thousands of years.
      for (let at = from; at < to;) {
        const [next] = nextTime.get(at) as unknown as [number | null]
        if (next === null || next >= to) return
        at = Math.max(at, next)
        const end = Math.min(to, (Math.floor(at / dayLength) + 1) * dayLength)
        const found = new Map<string, Facts>()
        readRows(at, end, (place) => of(found, place.agent), query, isOpen)
        for (const [name, facts] of found) {
          if (agent !== undefined && name !== agent) continue
          for (const all of listsOf(at, name)) all.addTotals(facts)
          total.add(facts)
        }
        at = end
      }
    }
    const firstHour = Math.ceil(since / hourLength)
    const lastHour = Math.max(firstHour, Math.floor(Math.min(until, closed) / hourLength))
    const isKept = new Set<number>()
    for (const [hour, , is] of state.iterate(firstHour, lastHour) as unknown as Iterable<number[]>) {
      if (is === 1) isKept.add(hour!)
    }
    const facts = kept.iterate(firstHour, lastHour, tenant, owner) as unknown as Iterable<KeptRow>
    for (const [hour, name, names, numbers] of facts) {
      if (!isKept.has(hour) || (agent !== undefined && name !== agent)) continue
      total.addKept({ names, numbers }, listsOf(hour * hourLength, name))
    }
    let from = since
    for (const hour of [...isKept].sort((a, b) => a - b)) {
      addRows(from, hour * hourLength)
      from = (hour + 1) * hourLength
    }
    addRows(from, until)
    addRows(since, until, true)
    return { totals: toTotals(total, byAgent, byDay), isPartlyKept: isKept.size < lastHour - firstHour }
  }

  function hours({ since, until, most }: { since: number; until: number; most: number }): HourFacts[] {
    const [firstHour, lastHour] = [Math.ceil(since / hourLength), Math.floor(until / hourLength)]
    const known = new Map(
      (state.all(firstHour, lastHour) as unknown as number[][]).map(([hour, changes, is]) => [hour!, { changes, is }]),
    )
    const found: HourFacts[] = []
    for (let hour = lastHour - 1; hour >= firstHour && found.length < most; hour--) {
      const { changes = 0, is = 0 } = known.get(hour) ?? {}
      if (is === 0) found.push({ hour, changes, rows: factsOf(hour) })
    }
    return found
  }

  function factsOf(hour: number): HourFacts['rows'] {
    const found = new Map<string, Place & { all: Facts }>()
    readRows(hour * hourLength, (hour + 1) * hourLength, (place) => {
      const key = JSON.stringify([place.tenant, place.owner, place.agent])
      let known = found.get(key)
      if (known === undefined) found.set(key, (known = { ...place, all: new Facts() }))
      return known.all
    })
    return [...found.values()].map(({ all, ...place }) => ({ ...place, ...all.keep() }))
  }

  return { read: (query) => atOnce(() => read(query)), hours: (query) => atOnce(() => hours(query)) }
}

const dayLength = 24 * hourLength

function addTime(facts: Facts, kind: TimeKind, name: string | number | null | undefined, ms: unknown): void {
  if (name != null && ms != null) facts.timesOf(kind, String(name)).values.push(Number(ms))
}

function toTotals(total: Facts, byAgent: ReadonlyMap<string, Facts>, byDay: ReadonlyMap<string, Facts>): Totals {
  const most = <T extends { count: number }>(all: T[]) => all.sort((a, b) => b.count - a.count).slice(0, mostRows)
  const counts = (names: ReadonlyMap<string, number>) => most([...names].map(([name, count]) => ({ name, count })))
  const runsOf = (all: ReadonlyMap<string, Facts>) =>
    [...all].flatMap(
      ([
        name,
        {
          counts: { status },
        },
      ]) => {
        const count = [...status.values()].reduce((sum, each) => sum + each, 0)
        return count === 0 ? [] : [{ name, count }]
      },
    )
  type Used = readonly [name: string, sums: readonly number[]]
  const used = (all: readonly Used[]) => all.map(([name, usage]): UsageOf => ({ name, ...toUsageSum(usage) }))
  // Sorted before they are made: there may be many more than are listed.
  const mostUsed = (all: Used[]) => used(all.sort(([, a], [, b]) => b[reportsAt]! - a[reportsAt]!).slice(0, mostRows))
  const usageOf = (all: ReadonlyMap<string, Facts>) =>
    [...all].flatMap(([name, facts]) => [...facts.used['model-used'].values()].map((usage): Used => [name, usage]))
  const times = (kind: TimeKind) => most([...total.times[kind]].map(([name, each]) => percentilesOf(name, each)))
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  const sum = noSums()
  for (const usage of total.used['model-used'].values()) addSums(sum, usage)
  return {
    outcomes: counts(total.counts.status),
    errors: counts(total.counts.error),
    agents: most(runsOf(byAgent)),
    days: runsOf(byDay).sort(byName).slice(0, mostRows),
    duration: times('run-took')[0] ?? null,
    usage: toUsageSum(sum),
    usageByModel: mostUsed([...total.used['model-used']]),
    usageByAgent: mostUsed(usageOf(byAgent)),
    usageByDay: used(usageOf(byDay)).sort(byName).slice(0, mostRows),
    usageByThread: mostUsed([...total.used['thread-used']]),
    modelCalls: times('model-took'),
    firstToken: times('model-first'),
    toolCalls: times('tool-took'),
  }
}
