/**
 * `readResult`, with which a model reads a long result that it was told shortened. It reads the log: of this run, and of the earlier runs of its thread.
 * A handle of another conversation does not exist.
 */
import {
  endAt,
  handleIn,
  jsonOfResult,
  lengthOf,
  readTool,
  resultsIn,
  textOfResult,
  valueOf,
} from '../fold/long-results.ts'
import { entryAt } from '../fold/read-view.ts'
import { markOfRun, parseHandle } from '../fold/result-handle.ts'
import { shapeOf } from '../fold/result-shape.ts'
import { grouped } from '../part/grouped.ts'
import { MillraceError } from '../part/error.ts'
import type { EntryOf } from '../part/entry.ts'
import type { Message } from '../part/message.ts'
import { runsOf } from '../part/principal.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import { valueAt } from './json-path.ts'
import type { Scope } from './scope.ts'
import type { OfferedTool } from './tool-call.ts'

/** Characters of one piece. */
const piece = 16 * 1024
/** Hits of one search, and the characters before and after each of them. */
const mostHits = 20
const around = 250
/** Earlier runs of the thread that are looked through. */
const mostRuns = 200
/** Handles that an error names. */
const mostNamed = 20

const description =
  'Reads a long result of a tool, of which the conversation has only the beginning and the end. Returns a piece of at most 16,384 characters.'
const inputSchema = {
  type: 'object',
  properties: {
    handle: { type: 'string', maxLength: 200, description: 'The handle of the result, such as res_12.' },
    from: { type: 'integer', minimum: 0, description: 'The character at which to begin. Default: 0.' },
    find: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      description: 'Returns the places that have these words, with the characters where they are, instead of a piece.',
    },
    path: {
      type: 'string',
      maxLength: 1000,
      description: 'Of a result that is JSON: reads only the value there, such as orders[3].lines.',
    },
  },
  required: ['handle'],
  additionalProperties: false,
}

interface ReadInput {
  handle: string
  from?: number
  find?: string
  path?: string
}

export interface ReadableLoop {
  /** Its conversation, as whole as this process has it. */
  whole(): Message[]
  /** As its model is told it. */
  told(): Message[]
}

export function createReadTool(scope: Scope, loop: ReadableLoop): OfferedTool {
  const tool: ToolImplementation = {
    description,
    parameters: inputSchema,
    idempotent: true,
    execute: async ({ handle, ...how }: ReadInput) => read(handle, await findResult(scope, loop, handle), how),
  }
  const implementation = scope.registry.playTool?.(readTool, tool) ?? tool
  return { spec: { name: readTool, description, inputSchema }, implementation }
}

/** The value of the result. Throws a `MillraceError` for the model. */
async function findResult(scope: Scope, loop: ReadableLoop, handle: string): Promise<unknown> {
  const isMeant = (result: Parameters<typeof handleIn>[0]) => handleIn(result) === handle
  for (const result of resultsIn(loop.whole())) {
    if (result.shortened !== true && result.toolName !== readTool && isMeant(result)) return valueOf(result.output)
  }
  // A summary may have taken its place. An agent that was called sees what it was told, and no other result of its caller.
  const told = loop.told()
  const isTold = [...resultsIn(told)].some(isMeant) || hasRead(told, handle)
  if (isTold || scope.depth === 0) {
    const found = inRun(scope, handle) ?? (await inThread(scope, handle))
    if (found !== undefined) return found.result
  }
  const others = knownIn(loop)
  const known =
    others === ''
      ? 'There are no long results in this conversation'
      : `The long results of this conversation: ${others}`
  if (isTold) {
    throw new MillraceError('bad-input', `The result ${handle} is not kept any more: its run was deleted. ${known}.`)
  }
  const why = 'A handle holds in its own conversation, as long as the run is kept that made it.'
  throw new MillraceError('bad-input', `There is no result "${handle}" here. ${why} ${known}.`)
}

/** Whether the model has read it before. */
function hasRead(messages: readonly Message[], handle: string): boolean {
  const ids = new Set<string>()
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue
    for (const part of content) {
      if (part.type !== 'tool-call' || part.toolName !== readTool) continue
      if ((part.input as Partial<ReadInput> | null)?.handle === handle) ids.add(part.toolCallId)
    }
  }
  return [...resultsIn(messages)].some(({ toolCallId, output }) => output.type === 'text' && ids.has(toolCallId))
}

function inRun({ state }: Scope, handle: string): EntryOf<'tool-result'> | undefined {
  for (const { list } of state.loops.values()) {
    for (const { calls } of list) {
      const call = calls.find((each) => each.handle === handle && each.result !== undefined)
      if (call !== undefined) return call.result
    }
  }
  return undefined
}

async function inThread(scope: Scope, handle: string): Promise<EntryOf<'tool-result'> | undefined> {
  const { store, signal } = scope
  const place = parseHandle(handle)
  if (place === undefined) return undefined
  for await (const { run, mark } of earlierRuns(scope)) {
    signal.throwIfAborted()
    if (mark !== place.mark) continue
    const entry = await unlessDeleted(entryAt(store.log, run, place.seq))
    if (entry?.type === 'tool-result') return entry
  }
  return undefined
}

/**
 * The runs before this one in its conversation, newest first: along the chain, or those of its thread where clients keep the history. Before a fork are
 * those of its source's thread.
 */
async function* earlierRuns({ runId, threadId, store, state }: Scope): AsyncGenerator<{ run: string; mark: string }> {
  const startOf = async (run: string) => {
    const first = await unlessDeleted(entryAt(store.log, run, 1))
    return first?.type === 'run-start' ? first : undefined
  }
  const seen = new Set([runId])
  for (let run = state.start?.previousRunId; run !== undefined && !seen.has(run) && seen.size <= mostRuns;) {
    seen.add(run)
    const start = await startOf(run)
    if (start === undefined) break
    yield { run, mark: markOfRun(start) }
    run = start.previousRunId
  }
  const mine = runsOf(state.start?.user)
  const source = state.start?.forkedFrom && (await store.runs.get(state.start.forkedFrom.runId))
  const places = [{ threadId, before: runId }, ...(source ? [{ threadId: source.threadId, before: source.id }] : [])]
  const rows = await Promise.all(places.map((place) => store.runs.list({ ...place, limit: mostRuns, ...mine })))
  for (const row of rows.flat()) {
    if (seen.has(row.id)) continue
    if ((row.owner ?? mine.owner) !== mine.owner || (row.tenant ?? mine.tenant) !== mine.tenant) continue
    const start = await startOf(row.id)
    if (start !== undefined) yield { run: row.id, mark: markOfRun(start) }
  }
}

async function unlessDeleted<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'unknown-run') return undefined
    throw error
  }
}

/** `res_12 (fetchPage, 123,456 characters), …`. */
function knownIn(loop: ReadableLoop): string {
  const whole = new Map<string, string>()
  for (const result of resultsIn(loop.whole())) {
    if (result.shortened !== true) whole.set(handleIn(result), `, ${grouped(lengthOf(result))} characters`)
  }
  const known = [...resultsIn(loop.told())].filter(
    ({ shortened, toolName }) => shortened === true && toolName !== readTool,
  )
  const named = known
    .slice(-mostNamed)
    .map((result) => `${handleIn(result)} (${result.toolName}${whole.get(handleIn(result)) ?? ''})`)
  return [...named, ...(known.length > mostNamed ? ['and older ones'] : [])].join(', ')
}

function read(handle: string, value: unknown, { from = 0, find, path }: Omit<ReadInput, 'handle'>): string {
  const part = path === undefined ? value : partOf(handle, value, path)
  const { text } = textOfResult(part)
  const what = path === undefined ? handle : `${path} of ${handle}`
  if (from > 0 && from >= text.length) {
    throw new MillraceError('bad-input', `"from" is ${from}, but ${what} has ${grouped(text.length)} characters.`)
  }
  return find === undefined ? pieceOf(text, from, what) : hitsIn(text, { find, from, what })
}

function partOf(handle: string, value: unknown, path: string): unknown {
  const json = jsonOfResult(value)
  if (json === undefined) {
    throw new MillraceError('bad-input', `${handle} is no JSON, so it has no "path". Use "from" or "find".`)
  }
  const found = valueAt(json, path)
  if ('value' in found) return found.value
  throw new MillraceError('bad-input', `${handle} has nothing at "${path}": ${found.fault} Its shape: ${shapeOf(json)}`)
}

function pieceOf(text: string, from: number, what: string): string {
  const end = endAt(text, Math.min(text.length, from + piece))
  if (from === 0 && end === text.length) return text
  const next = end < text.length ? `The next piece: from: ${end}.` : 'This is the last piece.'
  return `${text.slice(from, end)}\n\n[Characters ${grouped(from)} to ${grouped(end)} of the ${grouped(text.length)} of ${what}. ${next}]`
}

function hitsIn(text: string, { find, from, what }: { find: string; from: number; what: string }): string {
  const pattern = new RegExp(find.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`), 'giu')
  pattern.lastIndex = from
  const hits: string[] = []
  let next: number | undefined
  let shownTo = -1
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const { index } = match
    // It stands in the words around the hit before it.
    if (index + match[0].length <= shownTo) continue
    if (hits.length === mostHits) {
      next = index
      break
    }
    const start = endAt(text, Math.max(0, index - around))
    shownTo = endAt(text, Math.min(text.length, index + match[0].length + around))
    hits.push(`[at ${index}] ${start > 0 ? '…' : ''}${text.slice(start, shownTo)}${shownTo < text.length ? '…' : ''}`)
  }
  if (hits.length === 0) {
    const where = from === 0 ? '' : ` from character ${from} on`
    const json = jsonOfResult(text)
    const cure =
      json === undefined ? 'Try fewer words, or read it in pieces with "from".' : `Its shape: ${shapeOf(json)}`
    throw new MillraceError(
      'bad-input',
      `"${find}" does not occur in ${what}${where} (${grouped(text.length)} characters). ${cure}`,
    )
  }
  const more = next === undefined ? 'There are no more.' : `More: from: ${next}.`
  return `${hits.join('\n\n')}\n\n[${hits.length} places in ${what}, which has ${grouped(text.length)} characters. ${more}]`
}
