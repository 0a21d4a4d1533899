/** Folds the log of a run into the messages that a page shows: the question, and the answer as it comes. */
import type { Entry, EntryOf } from '../part/entry.ts'
import { messagesOf } from '../part/message.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { agentResult, createAgentCalls, type AgentCall } from '../fold/agent-calls.ts'
import { createAgentsAbove } from '../fold/agents-above.ts'
import { createAnswering } from '../fold/answering.ts'
import { callKey } from '../fold/open-items.ts'
import type { RequestView } from '../fold/run-view.ts'
import { parseInput } from '../fold/tool-loop.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import type { AgentMessage, AgentTrack, MessagePart, ToolPart } from './agent-message.ts'
import { questionMessages } from './thread-messages.ts'

type TextPart = Extract<MessagePart, { text: string }>

export interface MessageFold {
  readonly lastSeq: number
  readonly status: 'queued' | 'running' | 'suspended' | 'ended'
  /** Open requests, oldest first. */
  readonly requests: readonly RequestView[]
  /** The answer has begun. */
  readonly hasBegun: boolean
  readonly end: EntryOf<'run-end'> | undefined
  apply(entry: Entry): void
  /** The same array and the same objects as long as nothing of them has changed. */
  messages(): readonly AgentMessage[]
}

export function createMessageFold(runId: string): MessageFold {
  const answering = createAnswering()
  const calls = createAgentCalls()
  const above = createAgentsAbove()
  const objects = new Set<string>()
  const requests = new Map<string, RequestView>()
  let asked: AgentMessage[] = []
  let shown: readonly AgentMessage[] | undefined = []
  /** The parts of the answer. */
  const answer = createPartList(() => (shown = undefined), objects)
  /** The work of agents that a model has called, by the path of the call. */
  const tracks = new Map<string, Track>()
  const fold = {
    lastSeq: 0,
    status: 'queued' as MessageFold['status'],
    end: undefined as EntryOf<'run-end'> | undefined,
    get requests() {
      return [...requests.values()]
    },
    get hasBegun() {
      return answer.size > 0
    },
    apply,
    messages() {
      refresh()
      return (shown ??= [...asked, ...answerMessage()])
    },
  }

  function answerMessage(): AgentMessage[] {
    const { end } = fold
    const isQuiet = answer.size === 0 && (end === undefined || end.error === undefined)
    if (isQuiet) return []
    const said = { id: runId, role: 'assistant' as const, runId, parts: answer.read() }
    return [{ ...said, ...omitUndefined({ outcome: end?.outcome, error: end?.error }) }]
  }

  /** The parts to which output of a path belongs; undefined if nobody sees it. */
  function listAt(path: string): PartList | undefined {
    const call = calls.around(path)
    if (call !== undefined) return tracks.get(call.path)?.parts
    return answering.has(path) ? answer : undefined
  }

  function startCall(entry: EntryOf<'step-start'>): void {
    const call = calls.start(entry)
    const caller = call && listAt(parentPath(call.path))
    if (call === undefined || caller === undefined) return
    const key = callKey(call.path, call.toolCallId)
    const track: Track = {
      call,
      status: 'running',
      waits: new Set(),
      parts: createPartList(() => changed(track), objects),
      changed: () => caller.change<ToolPart>(key, (part) => ({ ...part, agent: shownTrack(track) })),
    }
    tracks.set(call.path, track)
    changed(track)
  }

  /** Not at once: what comes in between two frames is drawn once. */
  const stale = new Set<Track>()
  function changed(track: Track): void {
    stale.add(track)
    for (let at: AgentCall | undefined = track.call.parent; at !== undefined; at = at.parent) {
      const parent = tracks.get(at.path)
      if (parent !== undefined) stale.add(parent)
    }
    shown = undefined
  }

  /** Inner tracks first: the outer ones show them. */
  function refresh(): void {
    const list = [...stale].sort((a, b) => b.call.path.length - a.call.path.length)
    for (const track of list) track.changed()
    stale.clear()
  }

  /** An attempt of the call is superseded: another one may follow. */
  function forget(path: string): void {
    const track = tracks.get(path)
    if (track === undefined) return
    track.status = 'failed'
    track.changed()
    stale.delete(track)
    tracks.delete(path)
  }

  function settleWaits(path: string, settle: (waits: Set<string>) => void): void {
    for (let call = calls.around(path); call !== undefined; call = call.parent) {
      const track = tracks.get(call.path)
      if (track === undefined) continue
      settle(track.waits)
      track.status = track.waits.size > 0 ? 'waiting' : 'running'
      changed(track)
    }
  }

  function apply(entry: Entry): void {
    const { step, type, seq } = entry
    fold.lastSeq = seq
    above.apply(entry)
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
        startCall(entry)
        return
      case 'step-finish':
        calls.end(step)
        return
      case 'step-reset':
        for (const { path } of calls.under(step)) {
          calls.end(path)
          forget(path)
        }
        for (const list of [answer, ...Array.from(tracks.values(), ({ parts }) => parts)])
          list.drop((path) => isUnder(path, step))
        return
      case 'request': {
        const request = { ...entry, ...above.field(step) }
        requests.set(entry.requestId, request)
        if (entry.kind !== 'input') (listAt(parentPath(step)) ?? answer).ask(request)
        settleWaits(step, (waits) => waits.add(entry.requestId))
        return
      }
      case 'response':
        requests.delete(entry.requestId)
        ;(listAt(parentPath(step)) ?? answer).answered(entry.requestId)
        settleWaits(step, (waits) => waits.delete(entry.requestId))
        return
      case 'tool-result': {
        const call = agentResult(calls, entry)
        ;(listAt(parentPath(step)) ?? answer).settle(callKey(step, entry.toolCallId), entry)
        const track = call && tracks.get(call.path)
        if (track === undefined) return
        track.status = entry.isError === true ? 'failed' : 'done'
        changed(track)
        return
      }
      default:
        listAt(step)?.say(entry)
    }
  }

  return fold
}

interface Track {
  call: AgentCall
  status: AgentTrack['status']
  /** Ids of open requests. */
  waits: Set<string>
  parts: PartList
  /** Shows it in the part of its call. */
  changed(): void
}

function shownTrack({ call: { agent, path }, status, parts }: Track): AgentTrack {
  return { agent, path, status, parts: parts.read() }
}

/** The parts of an answer, or of the work of an agent. Parts that have not changed stay the same objects. */
interface PartList {
  readonly size: number
  read(): readonly MessagePart[]
  say(entry: Entry): void
  settle(key: string, entry: EntryOf<'tool-result'>): void
  ask(request: RequestView): void
  answered(requestId: string): void
  change<T extends MessagePart>(key: string, to: (part: T) => T): void
  /** Removes superseded attempts. */
  drop(isGone: (path: string, part: MessagePart) => boolean): void
}

/** `objects`: paths of steps whose answer is JSON. */
function createPartList(changed: () => void, objects: ReadonlySet<string>): PartList {
  const parts: { path: string; part: MessagePart }[] = []
  /** Places in `parts`: of blocks by id, of calls by step and id, of calls by request. */
  const places = new Map<string, number>()
  let shown: readonly MessagePart[] | undefined

  function touch(): void {
    shown = undefined
    changed()
  }

  function add(key: string, path: string, part: MessagePart): void {
    places.set(key, parts.push({ path, part }) - 1)
    touch()
  }

  function change<T extends MessagePart>(key: string, to: (part: T) => T): void {
    const at = parts[places.get(key) ?? -1]
    if (at === undefined) return
    at.part = to(at.part as T)
    touch()
  }

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
    touch()
  }

  function ask(request: RequestView): void {
    const { requestId, step, toolCallId = '', kind } = request
    places.set(requestId, places.get(callKey(step, toolCallId)) ?? -1)
    change<ToolPart>(requestId, (part) => ({
      ...part,
      request,
      state: kind === 'approval' ? 'approval-requested' : part.state,
    }))
  }

  function answered(requestId: string): void {
    change<ToolPart>(requestId, (part) => {
      const { request, ...rest } = part
      return { ...rest, state: request?.kind === 'approval' ? 'input-available' : part.state }
    })
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

  return {
    get size() {
      return parts.length
    },
    read: () => (shown ??= parts.map(({ part }) => part)),
    say,
    settle,
    ask,
    answered,
    change,
    drop,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
