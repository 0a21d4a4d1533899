/**
 * Conversations as rows, newest first: by when the newest run of each was started. They are read from the tables of the store, in one
 * query; a store without tables keeps so few runs that they are folded instead.
 */
import { pause } from '../../async/pause.ts'
import { MillraceError } from '../../part/error.ts'
import { type Store, timeOf, hasEnded, type RunRow } from '../../part/log.ts'
import type { OwnerFilter } from '../../part/principal.ts'
import type { Records } from '../../part/records.ts'
import {
  defaultCloseAfterMs,
  type ThreadQuery,
  type ThreadRow,
  type ThreadRule,
  threadClosed,
  type ThreadStatus,
} from '../../part/thread.ts'
import { inThread, queryThreads } from './query-threads.ts'
import { keptOf } from '../../fold/read-view.ts'
import { sumUsed, type UsedByModel } from '../../fold/usage-fold.ts'
import { filterParameters, queryRows, toUsed, usageSums, type UsageSum } from '../stats.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Message } from '../../part/message.ts'
import type { ThreadTitle } from '../../part/thread-title.ts'
import { addUsage, noUsage } from '../../part/usage.ts'
import type { KeptRun } from '../../fold/kept-run.ts'
import { textOf } from '../../fold/run-view.ts'
import { unlessDamaged } from '../../fold/unless-damaged.ts'
import { queryWords } from '../../store/run-query.ts'

/** A store, or as much of one as is needed. */
export type ThreadSource = Pick<Store, 'log' | 'runs' | 'records' | 'titles' | 'now'>

/** ms to wait for the tables. They lag behind by less, unless they are being rebuilt: then they are read as they are. */
const patience = 200

/**
 * Lists the conversations of a store. `rule`: when they count as closed; default 30 days without an entry.
 *
 * Rejects with `unknown-thread` (404) if there is no thread `before`, and with `bad-query` if `q` cannot be understood.
 */
export async function listThreads(
  store: ThreadSource,
  query: ThreadQuery = {},
  rule: ThreadRule = { closeAfterMs: defaultCloseAfterMs, now: timeOf(store) },
): Promise<ThreadRow[]> {
  const { records } = store
  if (query.before !== undefined) await existing(store, query.before, query)
  if (records === undefined) return foldThreads(store, query, rule)
  await upToDate(records)
  return queryThreads(records, query, rule)
}

/** One thread. Undefined if it has no runs that the filter shows. */
export async function readThread(
  store: ThreadSource,
  id: string,
  rule: ThreadRule,
  { owner, tenant }: OwnerFilter = {},
): Promise<ThreadRow | undefined> {
  const { records } = store
  const query = { id, ...omitUndefined({ owner, tenant }) }
  if (records === undefined) return (await foldThreads(store, query, rule))[0]
  await upToDate(records)
  return (await queryThreads(records, query, rule))[0]
}

async function upToDate(records: Records): Promise<void> {
  const leave = new AbortController()
  await Promise.race([records.settle(), pause(patience, leave.signal, { background: true })])
  leave.abort()
}

async function existing({ runs }: ThreadSource, id: string, { owner, tenant }: OwnerFilter): Promise<void> {
  const [run] = await runs.list({ threadId: id, limit: 1, ...omitUndefined({ owner, tenant }) })
  if (run !== undefined) return
  throw new MillraceError('unknown-thread', `unknown thread ${id} in \`before\`: list again without it`, {
    status: 404,
  })
}

/** The usage of a conversation, by model: of the runs that the filter shows. */
export async function threadUsage(
  store: ThreadSource,
  id: string,
  { owner, tenant }: OwnerFilter = {},
): Promise<UsedByModel[]> {
  const { records } = store
  const filter = filterParameters({ owner, tenant })
  if (records !== undefined) {
    const query = `SELECT t.model AS name, ${usageSums} FROM usage t WHERE t.run IN (
      SELECT r.id FROM runs r WHERE r.thread_id = :id${inThread('r', filter)}) GROUP BY 1 ORDER BY reports DESC`
    const parameters = { id, ...filter }
    const rows = await queryRows<UsageSum & { name: string }>(records, 'read usage', query, { parameters })
    return rows.map(({ name, ...sum }) => ({ model: name, ...toUsed(sum) }))
  }
  const runs = await store.runs.list({ threadId: id, limit: 1000, ...filter })
  const used = (await Promise.all(runs.map((row) => keptOf(store, row)))).flatMap(
    (stored) => stored?.usageByModel ?? [],
  )
  return [...new Set(used.map(({ model }) => model))].map((model) => ({
    model,
    ...sumUsed(used.filter((each) => each.model === model)),
  }))
}

/** Conversations of a store without tables, from the stored views of their runs. */
interface KeptRow {
  row: RunRow
  stored: KeptRun | undefined
}

/** `id`: only this thread. */
async function foldThreads(
  store: ThreadSource,
  { id, status, agent, owner, tenant, q, before, limit = 50 }: ThreadQuery & { id?: string },
  rule: ThreadRule,
): Promise<ThreadRow[]> {
  const threads = new Map<string, RunRow[]>()
  for (const row of await store.runs.list({ limit: 1000, ...omitUndefined({ threadId: id, owner, tenant }) })) {
    threads.set(row.threadId, [...(threads.get(row.threadId) ?? []), row])
  }
  const ids = [...threads.keys()]
  const titles = (await store.titles?.of(ids)) ?? new Map<string, ThreadTitle>()
  const found: ThreadRow[] = []
  for (const thread of before === undefined ? ids : ids.slice(ids.indexOf(before) + 1)) {
    if (found.length === limit) break
    const rows = threads.get(thread)!
    if (agent !== undefined && rows.every((row) => row.agent !== agent)) continue
    const runs: KeptRow[] = []
    for (const row of rows) runs.push(await readRow(store, row))
    const title = titles.get(thread)?.title
    const match = q === undefined ? undefined : matchOf(runs, queryWords(q))
    if (q !== undefined && match === undefined && !hasAll(title ?? '', queryWords(q))) continue
    const row = { ...toRow(thread, runs, rule), ...omitUndefined({ title, match }) }
    if (status === undefined || row.status === status) found.push(row)
  }
  return found
}

/** A run with damaged entries has the data of its row. It must not hide the others. */
async function readRow(store: ThreadSource, row: RunRow): Promise<KeptRow> {
  return (
    (await unlessDamaged(async () => ({ row: await withOwnUsage(store, row), stored: await keptOf(store, row) }))) ?? {
      row,
      stored: undefined,
    }
  )
}

/** A fork shares its source's usage up to that point, which is counted once, in the source. */
async function withOwnUsage({ log }: ThreadSource, row: RunRow): Promise<RunRow> {
  let forkedAt = 0
  for await (const [first] of log.read(row.id, { limit: 1 })) {
    if (first?.type === 'run-start') forkedAt = first.forkedFrom?.seq ?? 0
  }
  if (forkedAt === 0) return row
  const { cost: _, ...counted } = row
  let usage = noUsage
  let cost: number | undefined = 0
  for await (const batch of log.read(row.id, { after: forkedAt, before: row.lastSeq + 1, types: ['usage'] })) {
    for (const entry of batch) {
      if (entry.type !== 'usage') continue
      usage = addUsage(usage, entry.usage)
      cost = cost === undefined || entry.cost === undefined ? undefined : cost + entry.cost
    }
  }
  return { ...counted, usage, ...omitUndefined({ cost }) }
}

/** `runs`: newest first. */
function toRow(id: string, runs: readonly KeptRow[], { closeAfterMs, now }: ThreadRule): ThreadRow {
  const rows = runs.map(({ row }) => row)
  const stored = runs.flatMap((run) => run.stored ?? [])
  const updatedAt = Math.max(...rows.map((row) => (row.error?.code === threadClosed ? row.startedAt : row.updatedAt)))
  const firsts = rows.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])
  const called = rows.filter(({ usage }) => (usage?.totalTokens ?? 0) > 0)
  const isPriced = called.length > 0 && called.every(({ cost }) => cost !== undefined)
  const { inputTokens, outputTokens, totalTokens } = rows.reduce((sum, { usage }) => addUsage(sum, usage ?? noUsage), {
    ...noUsage,
  })
  const titles = rows.flatMap(({ title }) => title ?? [])
  const calls = stored.flatMap(({ messages }) => messages.flatMap(callsOf))
  const last = firsts[0]
  return {
    id,
    status: statusOf(rows, updatedAt <= now - closeAfterMs),
    agents: [...new Set(rows.map(({ agent }) => agent))],
    lastRunId: rows[0]!.id,
    startedAt: Math.min(...rows.map(({ startedAt }) => startedAt)),
    updatedAt,
    runCount: rows.length,
    messageCount: stored.reduce((sum, { asked, messages }) => sum + asked.length + messages.length, 0),
    models: [...new Set(stored.flatMap(({ usageByModel }) => usageByModel.map(({ model }) => model)))].toSorted(),
    tools: [...new Set(calls)].toSorted(),
    toolCallCount: calls.length,
    errorCount: rows.filter(({ status }) => hasEnded(status) && status !== 'completed' && status !== 'aborted').length,
    usage: omitUndefined({ inputTokens, outputTokens, totalTokens }),
    ...omitUndefined({
      title: titles.at(-1),
      cost: isPriced ? called.reduce((sum, { cost = 0 }) => sum + cost, 0) : undefined,
      firstTokenMs:
        last === undefined
          ? undefined
          : { average: Math.round(firsts.reduce((sum, each) => sum + each, 0) / firsts.length), last },
    }),
  }
}

function statusOf(rows: readonly RunRow[], isOld: boolean): ThreadStatus {
  if (rows.some(({ status }) => status === 'running')) return 'active'
  if (rows.some(({ status }) => status === 'suspended')) return 'waiting'
  return isOld ? 'closed' : 'idle'
}

function callsOf({ role, content }: Message): string[] {
  if (role !== 'assistant' || typeof content === 'string') return []
  return content.flatMap((part) => (part.type === 'tool-call' ? part.toolName : []))
}

/** The newest text that has all words, with its run. */
function matchOf(runs: readonly KeptRow[], words: readonly string[]): ThreadRow['match'] {
  for (const { row, stored } of runs) {
    const messages = stored === undefined ? [] : [...stored.asked, ...stored.messages].toReversed()
    const found = messages.find((message) => hasAll(textOf(message), words))
    if (found !== undefined) {
      const kind = found.role === 'user' ? 'user' : 'text'
      return { run: row.id, seq: 1, kind, excerpt: excerptOf(textOf(found), words[0] ?? '') }
    }
  }
  return undefined
}

function hasAll(text: string, words: readonly string[]): boolean {
  const folded = text.toLowerCase()
  return words.every((word) => folded.includes(word))
}

/** At most 200 characters around a word. */
function excerptOf(text: string, word: string): string {
  const from = Math.max(0, text.toLowerCase().indexOf(word) - 80)
  return text.slice(from, from + 200).replaceAll(/\s+/gu, ' ')
}
