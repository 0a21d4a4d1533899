/**
 * The files of a batch. Its inputs: one JSON value per line. Its results: one JSON object per line, on stdout or in a file that a later
 * batch continues.
 */
import { existsSync, openSync, closeSync, readFileSync, renameSync, writeFileSync, writeSync, statSync } from 'node:fs'
import type { CommandContext } from '../context.ts'
import { MillraceError, type ErrorValue, messageOf } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import type { Usage } from '../../part/usage.ts'
import { forStream, writeOut } from '../terminal/output.ts'
import { createHash } from 'node:crypto'

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
  const previous = new Map<string, string>()
  for (const text of readFileSync(context.path(output), 'utf8').split('\n')) {
    const result = readResult(text)
    if (result?.outcome === 'completed' && wanted.has(keyOf(result))) previous.set(keyOf(result), text)
  }
  const file = context.path(output)
  const temporary = `${file}.${process.pid}.tmp`
  writeFileSync(temporary, [...previous.values()].map((text) => `${text}\n`).join(''))
  renameSync(temporary, file)
  return new Set(previous.keys())
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

/** One line. Its text is parsed again when its run starts: there may be very many. */
export interface BatchLine {
  /** From 1. */
  line: number
  text: string
  /** Of its text, so that a result is only taken for the input that it belongs to. */
  hash: string
}

/** How many faults are printed. */
const maxFaults = 20

/** Throws `usage` with the places of all lines that are not inputs. */
export function readBatch(context: CommandContext, path: string): BatchLine[] {
  if (!existsSync(context.path(path))) throw new MillraceError('usage', `--input: there is no file ${path}.`)
  if (statSync(context.path(path)).isDirectory())
    throw new MillraceError('usage', `--input ${path} is a folder, not a file.`)
  const faults: string[] = []
  const lines: BatchLine[] = []
  for (const [i, text] of readFileSync(context.path(path), 'utf8')
    .replace(/^\uFEFF/u, '')
    .split('\n')
    .entries()) {
    if (text.trim() === '') continue
    const fault = faultOf(text)
    if (fault === undefined) {
      const hash = createHash('sha256').update(text.trim()).digest('hex').slice(0, 16)
      lines.push({ line: i + 1, text, hash })
    } else faults.push(`${path}:${i + 1} ${fault}`)
  }
  if (faults.length > 0) {
    const more = faults.length > maxFaults ? [`… and ${faults.length - maxFaults} more`] : []
    throw new MillraceError(
      'usage',
      `--input ${path} has errors:\n${[...faults.slice(0, maxFaults), ...more].join('\n')}`,
    )
  }
  if (lines.length === 0) throw new MillraceError('usage', `--input ${path} is empty: write one input per line.`)
  return lines
}

function faultOf(text: string): string | undefined {
  try {
    inputOf(text)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/** An object is `$input`, a string is the user's message. */
export function inputOf(text: string): Record<string, unknown> {
  const value = parseJson(text)
  if (typeof value === 'string') return { messages: [{ role: 'user', content: value }] }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Error('must be a JSON object (the input) or a JSON string (the message)')
}
