/** The results of a batch: one JSON object per line, on stdout or in a file that a later batch continues. */
import { existsSync, openSync, closeSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import type { ErrorValue } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import type { Usage } from '../../part/usage.ts'
import { forStream } from '../printable.ts'
import { writeOut } from '../write-out.ts'
import type { BatchLine } from './batch-input.ts'

export interface BatchResult {
  /** Its line in the input, from 1. */
  line: number
  hash: string
  /** Absent if it could not be started. */
  run?: string
  outcome: string
  text: string
  output?: unknown
  usage?: Usage
  /** In USD; absent if a price is unknown. */
  cost?: number
  /** ms. */
  duration: number
  error?: ErrorValue
}

export interface ResultSink {
  /** Lines that are done already. */
  isDone(line: BatchLine): boolean
  write(result: BatchResult): Promise<void>
  close(): void
}

export interface SinkFlags {
  output?: string
  resume?: boolean
}

/** Throws `usage` for a file that exists, unless it is resumed. */
export function openSink(
  context: CommandContext,
  { output, resume = false }: SinkFlags,
  lines: readonly BatchLine[],
): ResultSink {
  if (output === undefined) {
    if (resume) throw new MillraceError('usage', '--resume needs the file with the results so far: add --output.')
    return {
      isDone: () => false,
      write: async (result) => writeOut(context, `${forStream(JSON.stringify(result), context.stdout)}\n`),
      close: () => undefined,
    }
  }
  if (existsSync(context.path(output)) && !resume) {
    throw new MillraceError('usage', `--output ${output} exists. Continue it with --resume, or name another file.`)
  }
  const done =
    resume && existsSync(context.path(output))
      ? keepDone(context, output, new Set(lines.map(keyOf)))
      : new Set<string>()
  const file = openSync(context.path(output), 'a')
  return {
    isDone: ({ line, hash }) => done.has(keyOf({ line, hash })),
    // Whole lines at once: after a crash, only the last one can be incomplete.
    write: async (result) => void writeSync(file, `${JSON.stringify(result)}\n`),
    close: () => closeSync(file),
  }
}

function keyOf({ line, hash }: Pick<BatchLine, 'line' | 'hash'>): string {
  return `${line} ${hash}`
}

/** Keeps the results of completed runs of these lines only: the others are run again. Returns their keys. */
function keepDone(context: CommandContext, output: string, wanted: ReadonlySet<string>): Set<string> {
  const kept = new Map<string, string>()
  for (const text of readFileSync(context.path(output), 'utf8').split('\n')) {
    const result = readResult(text)
    if (result?.outcome === 'completed' && wanted.has(keyOf(result))) kept.set(keyOf(result), text)
  }
  const file = context.path(output)
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, [...kept.values()].map((text) => `${text}\n`).join(''))
  renameSync(temporary, file)
  return new Set(kept.keys())
}

/** Undefined for a line that a crash has cut off. */
function readResult(text: string): BatchResult | undefined {
  if (text.trim() === '') return undefined
  try {
    const value = parseJson(text) as Partial<BatchResult> | null
    return typeof value?.line === 'number' && typeof value.hash === 'string' ? (value as BatchResult) : undefined
  } catch {
    return undefined
  }
}
