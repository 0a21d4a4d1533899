/**
 * Agents that a model has called as tools, for `useChat`: a part `data-agent` for each call, which later ones with its id replace. A preliminary
 * output of the tool for each delta would send what was said again and again, so a part has only the end of it, and is sent at most four times a
 * second. The time is that of the entries, so that the same entries are always the same chunks.
 */
import { agentResult, createAgentCalls, type AgentCall } from '../../fold/agent-calls.ts'
import { LazyMap } from '../../fold/lazy-map.ts'
import type { Entry, EntryOf } from '../../part/entry.ts'
import { isUnder } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { UiChunk } from './ui-chunk.ts'

/** The data of a part `data-agent`. */
export interface UiAgent {
  /** The agent's id. */
  agent: string
  /** The call of the model: the id of its tool part. */
  toolCallId: string
  /** The path of the call. Agents that this one calls have paths below it. */
  path: string
  /** `waiting`: it has asked a person or a client, or an agent below it has. `failed`: its result is an error. */
  status: 'running' | 'waiting' | 'done' | 'failed'
  /** Its newest tool calls, oldest first, at most 20. */
  tools: UiAgentTool[]
  /** The last 2,000 UTF-16 units at most of what it has said. Agents below it have parts of their own. */
  tail: string
}

/** A tool call of a called agent. `failed`: its result is an error. */
/** A tool call of a called agent. `failed`: its result is an error. */
export interface UiAgentTool {
  toolCallId: string
  toolName: string
  status: 'running' | 'done' | 'failed'
}

export interface UiAgents {
  /** Whether a call that is shown is open. */
  readonly isOpen: boolean
  /** Call it with each entry, but for deltas while none is open. `isShown`: whether output of a path belongs to the answer. */
  apply(entry: Entry, isShown: (path: string) => boolean): void
  /** Whether a path belongs to an agent that was called as a tool, shown or not. Then: the call. */
  around(path: string): AgentCall | undefined
  /** Sends all parts that have changed, because the stream ends. */
  flush(): void
  /** Sends all parts of open calls, for a client that joins here. */
  reopen(): void
  /** The run ends in a failure: no open call has a result. */
  fail(): void
}

const longestTail = 2000
const mostTools = 20
/** In ms, between two parts of a call. */
const interval = 250

export function createUiAgents(sink: Sink<UiChunk>): UiAgents {
  return new AgentParts(sink)
}

interface AgentPart {
  call: AgentCall
  status: UiAgent['status']
  tools: (UiAgentTool & { step: string })[]
  text: string
  /** The path of the model call that spoke last. */
  spoke: string
  /** Ids of open requests. */
  waits: Set<string>
  sentAt: number
  isChanged: boolean
}

/** A class, not closures: one for each open stream (decisions/0028). */
class AgentParts implements UiAgents {
  isOpen = false
  readonly #sink: Sink<UiChunk>
  readonly #calls = createAgentCalls()
  /** Of open calls that are shown, by path. */
  readonly #parts = new LazyMap<string, AgentPart>()
  #now = 0

  constructor(sink: Sink<UiChunk>) {
    this.#sink = sink
  }

  around(path: string): AgentCall | undefined {
    return this.#calls.around(path)
  }

  apply(entry: Entry, isShown: (path: string) => boolean): void {
    this.#now = entry.timestamp
    if (entry.type === 'step-start') this.#start(entry, isShown)
    if (this.#parts.size > 0) this.#note(entry)
    if (entry.type === 'step-finish') this.#calls.end(entry.step)
    else if (entry.type === 'step-reset') for (const { path } of this.#calls.under(entry.step)) this.#calls.end(path)
    if (this.#parts.size === 0) return
    for (const part of this.#parts.values()) if (part.isChanged && this.#now - part.sentAt >= interval) this.#send(part)
  }

  #start(entry: EntryOf<'step-start'>, isShown: (path: string) => boolean): void {
    if (isUnder(entry.step, 'after')) return
    const call = this.#calls.start(entry)
    if (call === undefined) return
    if (call.parent === undefined ? !isShown(call.path) : !this.#parts.has(call.parent.path)) return
    const part: AgentPart = {
      call,
      status: 'running',
      tools: [],
      text: '',
      spoke: '',
      waits: new Set(),
      sentAt: 0,
      isChanged: true,
    }
    this.#parts.set(call.path, part)
    this.isOpen = true
    this.#send(part)
  }

  #note(entry: Entry): void {
    const { step } = entry
    const own = this.#parts.get(this.#calls.around(step)?.path ?? '')
    switch (entry.type) {
      case 'text-delta':
        if (own !== undefined) this.#say(own, entry)
        return
      case 'tool-call': {
        if (own === undefined) return
        const { toolCallId, toolName } = entry
        own.tools.push({ step, toolCallId, toolName, status: 'running' })
        if (own.tools.length > mostTools) own.tools.shift()
        own.isChanged = true
        return
      }
      case 'tool-result': {
        if (entry.preliminary === true) return
        const tool = own?.tools.findLast(({ toolCallId }) => toolCallId === entry.toolCallId)
        if (tool !== undefined) {
          tool.status = entry.isError === true ? 'failed' : 'done'
          own!.isChanged = true
        }
        if (agentResult(this.#calls, entry) !== undefined) this.#end(step, entry.isError === true ? 'failed' : 'done')
        return
      }
      case 'request':
      case 'response': {
        for (let call = this.#calls.around(step); call !== undefined; call = call.parent)
          this.#wait(this.#parts.get(call.path), entry)
        return
      }
      case 'step-finish':
        return this.#end(step, 'failed')
      case 'step-reset':
        for (const { path } of this.#calls.under(step)) this.#end(path, 'failed')
        if (own !== undefined) this.#takeBack(own, step)
        return
      default:
    }
  }

  #say(part: AgentPart, { step, delta }: EntryOf<'text-delta'>): void {
    if (delta === '') return
    const gap = part.spoke === step || part.text === '' || part.text.endsWith('\n') ? '' : '\n\n'
    part.spoke = step
    part.text += gap + delta
    // Not at each delta: cutting copies the text.
    if (part.text.length > 4 * longestTail) part.text = part.text.slice(-longestTail)
    part.isChanged = true
  }

  #wait(part: AgentPart | undefined, entry: EntryOf<'request'> | EntryOf<'response'>): void {
    if (part === undefined) return
    if (entry.type === 'request') part.waits.add(entry.requestId)
    else part.waits.delete(entry.requestId)
    part.status = part.waits.size > 0 ? 'waiting' : 'running'
    part.isChanged = true
  }

  /** A crash has superseded an attempt of one of its steps. */
  #takeBack(part: AgentPart, path: string): void {
    part.tools = part.tools.filter(({ step }) => !isUnder(step, path))
    if (isUnder(part.spoke, path)) part.text = ''
    part.waits.clear()
    part.status = 'running'
    part.isChanged = true
  }

  /** Sends the last part of the call at this path, and of those in it. */
  #end(path: string, status: 'done' | 'failed'): void {
    for (const [at, part] of [...this.#parts].reverse()) {
      if (!isUnder(at, path)) continue
      part.status = at === path ? status : 'failed'
      this.#send(part)
      this.#parts.delete(at)
    }
    this.isOpen = this.#parts.size > 0
  }

  #send(part: AgentPart): void {
    part.isChanged = false
    part.sentAt = this.#now
    if (this.#sink.muted) return
    const { agent, toolCallId, path } = part.call
    const tools = part.tools.map(({ toolCallId: id, toolName, status }) => ({ toolCallId: id, toolName, status }))
    const data: UiAgent = { agent, toolCallId, path, status: part.status, tools, tail: tailOf(part.text) }
    this.#sink.send({ type: 'data-agent', id: path, data })
  }

  flush(): void {
    for (const part of this.#parts.values()) if (part.isChanged) this.#send(part)
  }

  reopen(): void {
    for (const part of this.#parts.values()) this.#send(part)
  }

  fail(): void {
    for (const [path] of this.#parts) this.#end(path, 'failed')
  }
}

/** Without half of a surrogate pair at its start. */
function tailOf(text: string): string {
  const tail = text.slice(-longestTail)
  const first = tail.charCodeAt(0)
  return tail.length < text.length && first >= 0xdc00 && first <= 0xdfff ? tail.slice(1) : tail
}
