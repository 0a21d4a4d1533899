/** The inputs of a batch: a file with one JSON value per line. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'

/** One line. Its text is parsed again when its run starts: there may be very many. */
export interface BatchLine {
  /** From 1. */
  line: number
  text: string
  /** Of its text, so that a result is only taken for the input that it belongs to. */
  hash: string
}

/** At most so many faults are told. */
const most = 20

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
    const more = faults.length > most ? [`… and ${faults.length - most} more`] : []
    throw new MillraceError('usage', `--input ${path} has errors:\n${[...faults.slice(0, most), ...more].join('\n')}`)
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
