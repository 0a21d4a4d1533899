/**
 * Parts of any origin as a file with one JSON object per line, and a summary beside it: a model's stream, parts that a parser of `millrace/ingest`
 * yields, entries of a run. A server's own runs need none: `record.logFiles` writes theirs.
 */
import { rename, writeFile } from 'node:fs/promises'
import { toRecorded, type Entry, type Envelope } from '../part/entry.ts'
import { toErrorValue, type ErrorValue } from '../part/error.ts'
import type { Part, SourcePart } from '../part/part.ts'
import { addUsage, toUsage, type Usage } from '../part/usage.ts'
import type { Summary } from '../fold/run-view.ts'
import { readTail, appendLines } from './log-tail.ts'

/** A part, or an entry of a run. Its `seq`, `timestamp` (epoch ms) and `step` are kept. */
export type LoggedPart = Part | SourcePart | Entry

/** The content of `<name>.summary.json`. The counts are there twice: also as `stream_summary`. */
export interface FileSummary extends Summary {
  stream_summary: Summary
  /** `completed`, `failed` if an error ended it, or the outcome of a run. */
  status: string
  /** Epoch ms; absent if nothing was written. */
  startedAt?: number
  endedAt?: number
  duration?: number
  /** The total, if it is known. */
  tokens?: number
  usage?: Usage
  /** In USD; absent if it is unknown. */
  cost?: number
  error?: ErrorValue
}

/** A file that {@link openFileLog} has opened. */
export interface FileLog {
  /** The last line of the file was incomplete, as a crash leaves it, and was removed. */
  torn: boolean
  /** Resolves when the parts are in the file, as whole lines. Calls are written in their order. */
  append(...parts: LoggedPart[]): Promise<void>
  /** Writes the summary. `error`: the error that ended the stream early. */
  close(ending?: { error?: unknown }): Promise<FileSummary>
}

/**
 * Opens or creates the file. One that exists is continued after its last whole line: a line that a crash has cut off is removed, and `torn` says so. The
 * summary is that of the parts of this call.
 */
export async function openFileLog(path: string): Promise<FileLog> {
  const tail = await readTail(path)
  let { seq } = tail
  const counts: Summary = { textBlocks: 0, reasoningBlocks: 0, toolCalls: 0, toolResults: 0, errors: 0 }
  let startedAt: number | undefined
  let endedAt = 0
  let usage: Usage | undefined
  let cost: number | undefined
  let status = 'completed'
  let failure: ErrorValue | undefined
  let writing: Promise<void> = Promise.resolve()

  function toEntry(given: LoggedPart): Entry {
    const { seq: own, timestamp: at, step = '', ...part } = given as Part & { [K in keyof Envelope]?: unknown }
    seq = typeof own === 'number' ? own : seq + 1
    // Metadata of a response have a time of their own, a Date.
    const timestamp = typeof at === 'number' ? at : Date.now()
    startedAt ??= timestamp
    endedAt = timestamp
    const recorded = toRecorded((at instanceof Date ? { ...part, timestamp: at } : part) as Part)
    return { seq, timestamp, step, ...recorded } as Entry
  }

  function count(entry: Entry): void {
    switch (entry.type) {
      case 'text-end':
        counts.textBlocks++
        break
      case 'reasoning-end':
        counts.reasoningBlocks++
        break
      case 'tool-call':
        counts.toolCalls++
        break
      case 'tool-result':
        if (entry.preliminary !== true) counts.toolResults++
        break
      case 'error':
        counts.errors++
        status = 'failed'
        failure ??= entry.error
        break
      case 'usage':
        usage = addUsage(usage, entry.usage)
        if (entry.cost !== undefined) cost = (cost ?? 0) + entry.cost
        break
      case 'finish':
        usage ??= toUsage(entry.usage)
        break
      case 'run-end':
        status = entry.outcome
        usage = entry.usage
        cost = entry.cost
        failure = entry.error
        break
      default:
    }
  }

  return {
    torn: tail.torn,
    append(...parts) {
      const lines = parts.map((part) => {
        const entry = toEntry(part)
        count(entry)
        return `${JSON.stringify(entry)}\n`
      })
      const write = writing.then(() => appendLines(path, lines.join('')))
      // The next call is written, or fails, for itself.
      writing = write.catch(() => undefined)
      return write
    },
    async close({ error } = {}) {
      await writing
      if (error !== undefined) {
        status = 'failed'
        failure = toErrorValue(error)
      }
      const summary: FileSummary = { ...counts, stream_summary: counts, status }
      if (startedAt !== undefined) {
        Object.assign(summary, { startedAt, endedAt, duration: Math.max(0, endedAt - startedAt) })
      }
      if (usage !== undefined) summary.usage = usage
      if (usage?.totalTokens !== undefined) summary.tokens = usage.totalTokens
      if (cost !== undefined) summary.cost = cost
      if (failure !== undefined) summary.error = failure
      const file = summaryPath(path)
      await writeFile(`${file}.tmp`, `${JSON.stringify(summary, null, 2)}\n`, { mode: 0o600 })
      await rename(`${file}.tmp`, file)
      return summary
    },
  }
}

/** Writes all parts and the summary, also if the parts end with an error, which is then thrown. */
export async function writeFileLog(
  path: string,
  parts: Iterable<LoggedPart> | AsyncIterable<LoggedPart>,
): Promise<FileSummary> {
  const log = await openFileLog(path)
  try {
    for await (const part of parts) await log.append(part)
  } catch (error) {
    await log.close({ error })
    throw error
  }
  return await log.close()
}

/** `run.ndjson` and `run.log` have `run.summary.json`. */
function summaryPath(path: string): string {
  return `${path.replace(/\.(?:ndjson|jsonl|log)$/u, '')}.summary.json`
}
