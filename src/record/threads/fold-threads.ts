/** Conversations of a store without tables, from what is kept of their runs. */
import { compact } from '../../part/compact.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import type { Message } from '../../part/message.ts'
import {
  threadClosed,
  type ThreadQuery,
  type ThreadRow,
  type ThreadRule,
  type ThreadStatus,
} from '../../part/thread.ts'
import { addUsage, noUsage } from '../../part/usage.ts'
import type { KeptRun } from '../../fold/kept-run.ts'
import { keptOf } from '../../fold/read-view.ts'
import { textOf } from '../../fold/run-view.ts'
import { unlessDamaged } from '../../fold/unless-damaged.ts'
import { queryWords } from '../../store/run-query.ts'
import type { ThreadSource } from './list-threads.ts'

interface KeptRow {
  row: RunRow
  kept: KeptRun | undefined
}

/** `id`: only this thread. */
export async function foldThreads(
  store: ThreadSource,
  { id, status, agent, q, before, limit = 50 }: ThreadQuery & { id?: string },
  rule: ThreadRule,
): Promise<ThreadRow[]> {
  const threads = new Map<string, RunRow[]>()
  for (const row of await store.runs.list({ limit: 1000, ...compact({ threadId: id }) })) {
    threads.set(row.threadId, [...(threads.get(row.threadId) ?? []), row])
  }
  const ids = [...threads.keys()]
  const found: ThreadRow[] = []
  for (const thread of before === undefined ? ids : ids.slice(ids.indexOf(before) + 1)) {
    if (found.length === limit) break
    const rows = threads.get(thread)!
    if (agent !== undefined && rows.every((row) => row.agent !== agent)) continue
    const runs: KeptRow[] = []
    for (const row of rows) runs.push(await readRow(store, row))
    const match = q === undefined ? undefined : matchOf(runs, queryWords(q))
    if (q !== undefined && match === undefined) continue
    const row = { ...toRow(thread, runs, rule), ...compact({ match }) }
    if (status === undefined || row.status === status) found.push(row)
  }
  return found
}

/** One whose entries are damaged is what its row says. It must not hide the others. */
async function readRow(store: ThreadSource, row: RunRow): Promise<KeptRow> {
  return (
    (await unlessDamaged(async () => ({ row: await withOwnUsage(store, row), kept: await keptOf(store, row) }))) ?? {
      row,
      kept: undefined,
    }
  )
}

/** A fork shares what its source has used up to there, and it is counted once, there. */
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
  return { ...counted, usage, ...compact({ cost }) }
}

/** `runs`: newest first. */
function toRow(id: string, runs: readonly KeptRow[], { closeAfterMs, now }: ThreadRule): ThreadRow {
  const rows = runs.map(({ row }) => row)
  const kept = runs.flatMap((run) => run.kept ?? [])
  const updatedAt = Math.max(...rows.map((row) => (row.error?.code === threadClosed ? row.startedAt : row.updatedAt)))
  const firsts = rows.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])
  const called = rows.filter(({ usage }) => (usage?.totalTokens ?? 0) > 0)
  const isPriced = called.length > 0 && called.every(({ cost }) => cost !== undefined)
  const { inputTokens, outputTokens, totalTokens } = rows.reduce((sum, { usage }) => addUsage(sum, usage ?? noUsage), {
    ...noUsage,
  })
  const titles = rows.flatMap(({ title }) => title ?? [])
  const calls = kept.flatMap(({ messages }) => messages.flatMap(callsOf))
  const last = firsts[0]
  return {
    id,
    status: statusOf(rows, updatedAt <= now - closeAfterMs),
    agents: [...new Set(rows.map(({ agent }) => agent))],
    lastRunId: rows[0]!.id,
    startedAt: Math.min(...rows.map(({ startedAt }) => startedAt)),
    updatedAt,
    runCount: rows.length,
    messageCount: kept.reduce((sum, { asked, messages }) => sum + asked.length + messages.length, 0),
    models: [...new Set(kept.flatMap(({ usageByModel }) => usageByModel.map(({ model }) => model)))].toSorted(),
    tools: [...new Set(calls)].toSorted(),
    toolCallCount: calls.length,
    errorCount: rows.filter(({ status }) => hasEnded(status) && status !== 'completed' && status !== 'aborted').length,
    usage: compact({ inputTokens, outputTokens, totalTokens }),
    ...compact({
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
  for (const { row, kept } of runs) {
    const messages = kept === undefined ? [] : [...kept.asked, ...kept.messages].toReversed()
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
