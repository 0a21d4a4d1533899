/** Folds the log of a run into the messages that a page shows: the question, and the answer as it comes. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { messagesOf } from '../part/message.ts'
import { isUnder } from '../part/path.ts'
import { createAnswering } from '../fold/answering.ts'
import { callKey } from '../fold/open-items.ts'
import { parseInput } from '../fold/tool-loop.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { AgentMessage, MessagePart, ToolPart } from './agent-message.ts'
import { questionMessages } from './thread-messages.ts'

type TextPart = Extract<MessagePart, { text: string }>

export interface MessageFold {
  readonly lastSeq: number
  readonly status: 'queued' | 'running' | 'suspended' | 'ended'
  /** Open requests, oldest first. */
  readonly requests: readonly EntryOf<'request'>[]
  /** The answer has begun. */
  readonly hasBegun: boolean
  readonly end: EntryOf<'run-end'> | undefined
  apply(entry: Entry): void
  /** The same array and the same objects as long as nothing of them has changed. */
  messages(): readonly AgentMessage[]
}

export function createMessageFold(runId: string): MessageFold {
  const answering = createAnswering()
  const objects = new Set<string>()
  const parts: { path: string; part: MessagePart }[] = []
  /** Places in `parts`: of blocks by id, of calls by step and id, of calls by request. */
  const places = new Map<string, number>()
  const requests = new Map<string, EntryOf<'request'>>()
  let asked: AgentMessage[] = []
  let shown: readonly AgentMessage[] | undefined = []
  const fold = {
    lastSeq: 0,
    status: 'queued' as MessageFold['status'],
    end: undefined as EntryOf<'run-end'> | undefined,
    get requests() {
      return [...requests.values()]
    },
    get hasBegun() {
      return parts.length > 0
    },
    apply,
    messages: () => (shown ??= [...asked, ...answer()]),
  }

  function answer(): AgentMessage[] {
    const { end } = fold
    const isQuiet = parts.length === 0 && (end === undefined || end.error === undefined)
    if (isQuiet) return []
    const said = { id: runId, role: 'assistant' as const, runId, parts: parts.map(({ part }) => part) }
    return [{ ...said, ...omitUndefined({ outcome: end?.outcome, error: end?.error }) }]
  }

  function add(key: string, path: string, part: MessagePart): void {
    places.set(key, parts.push({ path, part }) - 1)
    shown = undefined
  }

  function change<T extends MessagePart>(key: string, to: (part: T) => T): void {
    const at = parts[places.get(key) ?? -1]
    if (at === undefined) return
    at.part = to(at.part as T)
    shown = undefined
  }

  /** Removes superseded attempts. */
  function drop(isGone: (path: string, part: MessagePart) => boolean): void {
    /** Where each part moves to; -1: it goes. */
    const to: number[] = []
    let left = 0
    for (const { path, part } of parts) to.push(isGone(path, part) ? -1 : left++)
    if (left === parts.length) return
    for (const [key, place] of places) {
      const next = to[place]!
      if (next < 0) places.delete(key)
      else places.set(key, next)
    }
    for (const [i, part] of parts.entries()) if (to[i]! >= 0) parts[to[i]!] = part
    parts.length = left
    shown = undefined
  }

  function apply(entry: Entry): void {
    const { step, type, seq } = entry
    fold.lastSeq = seq
    switch (type) {
      case 'run-start':
        fold.status = 'running'
        asked = questionMessages(messagesOf(entry.input), runId)
        shown = undefined
        return
      case 'suspend':
        fold.status = 'suspended'
        return
      case 'resume':
        fold.status = 'running'
        return
      case 'run-end':
        fold.status = 'ended'
        fold.end = entry
        requests.clear()
        shown = undefined
        return
      case 'step-start':
        answering.note(entry)
        if (entry.object) objects.add(step)
        return
      case 'step-reset':
        drop((path) => isUnder(path, step))
        return
      case 'request':
        requests.set(entry.requestId, entry)
        if (entry.toolCallId === undefined) return
        places.set(entry.requestId, places.get(callKey(step, entry.toolCallId)) ?? -1)
        change<ToolPart>(entry.requestId, (part) => ({
          ...part,
          request: entry,
          state: entry.kind === 'approval' ? 'approval-requested' : part.state,
        }))
        return
      case 'response':
        requests.delete(entry.requestId)
        change<ToolPart>(entry.requestId, (part) => {
          const { request, ...rest } = part
          return { ...rest, state: request?.kind === 'approval' ? 'input-available' : part.state }
        })
        return
      case 'tool-result':
        settle(callKey(step, entry.toolCallId), entry)
        return
      default:
        if (answering.has(step)) say(entry)
    }
  }

  function say(entry: Entry): void {
    const { step } = entry
    switch (entry.type) {
      case 'text-start':
      case 'reasoning-start':
        return add(entry.id, step, {
          type: entry.type === 'text-start' ? 'text' : 'reasoning',
          text: '',
          state: 'streaming',
        })
      case 'text-delta':
      case 'reasoning-delta':
        return change<TextPart>(entry.id, (part) => ({ ...part, text: part.text + entry.delta }))
      case 'text-end':
      case 'reasoning-end':
        return change<TextPart>(entry.id, (part) => ({ ...part, state: 'done' }))
      case 'tool-input-start': {
        const { id: toolCallId, toolName } = entry
        return add(callKey(step, toolCallId), step, {
          type: 'tool',
          toolCallId,
          toolName,
          state: 'input-streaming',
          inputText: '',
        })
      }
      case 'tool-input-delta':
        return change<ToolPart>(callKey(step, entry.id), (part) => ({
          ...part,
          inputText: part.inputText + entry.delta,
        }))
      case 'tool-call': {
        const { toolCallId, toolName, input: inputText } = entry
        const key = callKey(step, toolCallId)
        // Text beside a call is not the requested JSON.
        if ([...objects].some((root) => isUnder(step, root))) drop((path, { type }) => path === step && type === 'text')
        const known = parts[places.get(key) ?? -1]
        if (known?.part.type !== 'tool' || known.part.state !== 'input-streaming') {
          add(key, step, { type: 'tool', toolCallId, toolName, state: 'input-available', inputText })
        }
        return change<ToolPart>(key, (part) => ({
          ...part,
          state: 'input-available',
          inputText,
          input: parseInput(inputText),
        }))
      }
      case 'retry':
        return drop((path, { type }) => path === step && type === 'text')
      case 'file':
      case 'reasoning-file': {
        const { mediaType, data } = entry
        const url = typeof data === 'string' ? `data:${mediaType};base64,${data}` : data.url
        return add(`${entry.seq}`, step, { type: 'file', mediaType, url })
      }
      case 'source': {
        const { title, ...source } = entry
        const url = source.sourceType === 'url' ? source.url : undefined
        return add(`${entry.seq}`, step, { type: 'source', ...omitUndefined({ url, title }) })
      }
      case 'data': {
        const { name, id, data, transient } = entry
        if (transient === true) return
        const key = `data\n${name}\n${id ?? entry.seq}`
        if (places.has(key)) return change<Extract<MessagePart, { type: 'data' }>>(key, (part) => ({ ...part, data }))
        return add(key, step, { type: 'data', name, data, ...omitUndefined({ id }) })
      }
      default:
    }
  }

  function settle(key: string, { result, isError, outcome, preliminary }: EntryOf<'tool-result'>): void {
    if (preliminary === true) return change<ToolPart>(key, (part) => ({ ...part, output: result }))
    const state = outcome === 'denied' ? 'output-denied' : isError ? 'output-error' : 'output-available'
    const said = isError || outcome === 'denied' ? { errorText: textOf(result) } : { output: result as unknown }
    change<ToolPart>(key, (part) => ({ ...part, state, ...said }))
  }

  return fold
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
