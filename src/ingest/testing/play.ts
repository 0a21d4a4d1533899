/** Plays the output of a CLI through its parser, and judges the parts. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { toRecorded, type Entry } from '../../part/entry.ts'
import type { Part, SourcePart } from '../../part/part.ts'
import { noUsage } from '../../part/usage.ts'
import { createCallIds } from '../../fold/call-ids.ts'
import { createGrammar } from '../../fold/grammar.ts'
import { createNormaliser } from '../../fold/normalise.ts'
import { createOpenItems } from '../../fold/open-items.ts'
import type { CliName } from '../cli-names.ts'
import { createCliParser } from '../cli-parser.ts'
import type { CliExit, CliOutcome } from '../outcome.ts'
import type { CliParserOptions } from '../transcript.ts'

export interface Played {
  parts: SourcePart[]
  outcome: CliOutcome
  prompt: string | undefined
}

export interface PlayOptions extends CliParserOptions {
  /** Length of the chunks; the whole at once by default. */
  size?: number
  exit?: CliExit
}

/** A list of chunks is fed as it is. */
export function play(
  cli: CliName,
  given: Uint8Array | string | readonly Uint8Array[],
  { size, exit, ...options }: PlayOptions = {},
): Played {
  const parser = createCliParser(cli, options)
  const parts: SourcePart[] = []
  for (const chunk of chunksOf(given, size)) parts.push(...parser.feed(chunk))
  parts.push(...parser.end(exit))
  return { parts, outcome: parser.outcome(), prompt: parser.prompt }
}

function* chunksOf(given: Uint8Array | string | readonly Uint8Array[], size: number | undefined) {
  if (typeof given !== 'string' && !(given instanceof Uint8Array)) {
    yield* given
    return
  }
  const step = size ?? Math.max(1, given.length)
  for (let at = 0; at < given.length; at += step) yield given.slice(at, at + step)
}

/** The faults of a parser's parts, as they are and after the normaliser of a run. */
export function faultsOf(parts: readonly SourcePart[]): string[] {
  const types = parts.map(({ type }) => type)
  const faults: string[] = []
  const once = (type: SourcePart['type']) => types.filter((each) => each === type).length
  if (once('stream-start') !== 1 || once('session-info') > 1)
    faults.push('stream-start once, session-info at most once')
  if (types[once('session-info')] !== 'stream-start') faults.push(`it begins with ${types.slice(0, 2).join(', ')}`)
  if (once('finish') !== 1 || types.at(-1) !== 'finish') faults.push('one finish, at the end')
  return [...faults, ...judge(parts, false), ...judge(parts, true)]
}

function judge(parts: readonly SourcePart[], isNormalised: boolean): string[] {
  const open = createOpenItems()
  const callIds = createCallIds()
  const grammar = createGrammar()
  const faults: string[] = []
  let seq = 0
  let ids = 0
  const emit = (step: string, part: Part) => {
    const entry = { seq: ++seq, timestamp: 0, step, ...toRecorded(part) } as Entry
    open.apply(entry)
    callIds.apply(entry)
    const fault = grammar.check(entry)
    if (fault !== undefined) faults.push(fault)
  }
  const path = 'main/agent/1'
  emit('', { type: 'run-start', runId: 'r', agent: 'a', pipeline: '', threadId: 't', protocol: 'library', input: {} })
  emit('main/agent', { type: 'step-start', stepType: 'cli-agent', attempt: 1 })
  emit(path, { type: 'step-start', stepType: 'cli-agent', attempt: 1, answer: true })
  const normaliser = createNormaliser({ path, emit, newId: () => `n${++ids}`, open, callIds, isTranscript: true })
  for (const part of parts)
    if (isNormalised) normaliser.part(part)
    else emit(path, part)
  if (isNormalised) normaliser.end()
  emit(path, { type: 'step-finish', duration: 0 })
  emit('main/agent', { type: 'step-finish', duration: 0 })
  emit('', { type: 'run-end', outcome: 'completed', usage: noUsage })
  const missing = grammar.end()
  return missing === undefined ? faults : [...faults, missing]
}

/** The parts in short: `text-delta b1 Hi`. */
export function short(parts: readonly SourcePart[]): string[] {
  return parts.map((part) => {
    const { type } = part
    if ('delta' in part) return `${type} ${part.id} ${part.delta}`
    if (type === 'cli-output') return `${type} ${part.raw}`
    if (type === 'tool-result') return `${type} ${part.toolCallId} ${JSON.stringify(part.result)}`
    if (type === 'tool-call') return `${type} ${part.toolCallId} ${part.input}`
    return 'id' in part && part.id !== undefined ? `${type} ${part.id}` : type
  })
}

/** The text of the answer: sub-agents do not add to it. */
export function textIn(parts: readonly SourcePart[]): string {
  return parts
    .map((part) => (part.type === 'text-delta' && part.providerMetadata?.['claude'] === undefined ? part.delta : ''))
    .join('')
}

export function lines(...events: (object | string)[]): string {
  return events.map((event) => `${typeof event === 'string' ? event : JSON.stringify(event)}\n`).join('')
}

const fixtures = new URL('../../../../shared/fixtures/', import.meta.url)

/** The recordings of a CLI, if they are on this machine. */
export function recordingsOf(cli: CliName): { name: string; bytes: Uint8Array }[] {
  const folder = new URL(`${cli}/`, fixtures)
  if (!existsSync(folder)) return []
  return readdirSync(folder).map((name) => ({ name, bytes: readFileSync(new URL(name, folder)) }))
}

/** Those of the newest programs: `claude-2.1.332-tool.jsonl` is of the program `claude`. */
export function newestRecordings(): { name: string; program: string; bytes: Uint8Array }[] {
  const folder = new URL('cli-2026-11/', fixtures)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => ({ name, program: name.split('-')[0]!, bytes: readFileSync(new URL(name, folder)) }))
}

export const sizes = [1, 2, 3, 7, 64]

/** The same parts however the bytes are cut, and legal ones, also when they break off. */
export function expectSameAtAnyCut(cli: CliName, bytes: Uint8Array): Played {
  const whole = play(cli, bytes)
  expect(faultsOf(whole.parts)).toEqual([])
  for (const size of sizes) expect(play(cli, bytes, { size }), `chunks of ${size}`).toEqual(whole)
  return whole
}
