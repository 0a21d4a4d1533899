/** The input of a run: `--input`, the message from `-m` or stdin, and attached files. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { CommandContext } from './context.ts'
import { messageOf, MillraceError } from '../part/error.ts'
import { parseJson } from '../part/json.ts'
import { withFiles } from './input-files.ts'

export interface InputFlags {
  message?: string
  input?: string
  file?: string[]
}

/** Whether an input file has one input per line. */
export function isBatch(path: string | undefined): path is string {
  return path !== undefined && /\.(?:jsonl|ndjson)$/iu.test(path)
}

export async function readInput(
  context: CommandContext,
  { message, input, file = [] }: InputFlags,
): Promise<Record<string, unknown>> {
  const given = input === undefined ? undefined : readObject(context, input)
  if (given !== undefined && message === undefined && file.length === 0) return given
  if (message === undefined && context.stdin.isTTY) {
    throw new MillraceError('usage', 'No message. Pass one with -m "text", --input file.json or on stdin.')
  }
  const content = message ?? (await text(context.stdin)).trim()
  if (content === '' && file.length === 0)
    throw new MillraceError('usage', 'The message is empty. Pass one with -m "text" or on stdin.')
  return { ...given, messages: [{ role: 'user', content: withFiles(context, content, file) }] }
}

/** The object of `--input`. Throws `usage`. */
export function readObject(context: CommandContext, path: string): Record<string, unknown> {
  let value: unknown
  let content = ''
  try {
    content = readFileSync(context.path(path), 'utf8')
    value = parseJson(content)
  } catch (error) {
    if (!existsSync(context.path(path))) throw new MillraceError('usage', `--input: there is no file ${path}.`)
    if (statSync(context.path(path)).isDirectory())
      throw new MillraceError('usage', `--input ${path} is a folder, not a file.`)
    throw new MillraceError('usage', `--input ${path}: ${messageOf(error)}${perLine(content)}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new MillraceError('usage', `--input ${path} must hold a JSON object.`)
  }
  return value as Record<string, unknown>
}

/** The cure for a batch whose file has another name. */
function perLine(text: string): string {
  const [first = '', ...rest] = text.trim().split('\n')
  if (rest.length === 0 || !/^\{.*\}$/u.test(first.trim())) return ''
  return '. If it has one input per line, name it .jsonl'
}
