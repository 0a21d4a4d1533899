/**
 * The calls of agents as tools: which are open, and to which one a path belongs. A handoff is no such call: the agent that takes over gives the
 * answer itself, so its steps belong to the caller.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { LazyMap } from './lazy-map.ts'

/** A model has called an agent as a tool. */
export interface AgentCall {
  /** The path of the call. Everything that the agent does is below it. */
  readonly path: string
  readonly agent: string
  readonly toolCallId: string
  readonly toolName: string
  /** Epoch ms. */
  readonly startedAt: number
  /** The call around it, if another called agent made it. */
  readonly parent: AgentCall | undefined
  /** Set once the call has its result. */
  result?: EntryOf<'tool-result'>
}

export interface AgentCalls {
  /** Returns the call that this entry starts. */
  start(entry: EntryOf<'step-start'>): AgentCall | undefined
  /** The open call at exactly this path. */
  at(path: string): AgentCall | undefined
  /** The innermost open call whose agent works at this path. Not the call itself at its own path. One lookup for a known path. */
  around(path: string): AgentCall | undefined
  /** The open calls at and under a path, outer ones first. */
  under(path: string): AgentCall[]
  /** Call it at the end of the step: the call is not open any more. */
  end(path: string): void
}

/** Whether a step is a call of an agent as a tool. */
export function callsAgent({ agent, toolCallId, handoff }: EntryOf<'step-start'>): boolean {
  return agent !== undefined && toolCallId !== undefined && handoff !== true
}

/** Notes the result of a call. `undefined` if the entry is no result of an open call of an agent. */
export function agentResult(calls: AgentCalls, entry: Entry): AgentCall | undefined {
  if (entry.type !== 'tool-result' || entry.preliminary === true) return undefined
  const call = calls.at(entry.step)
  if (call?.toolCallId !== entry.toolCallId) return undefined
  call.result = entry
  return call
}

export function createAgentCalls(): AgentCalls {
  return new OpenCalls()
}

/** A class, not closures: one for each open stream (decisions/0028). */
class OpenCalls implements AgentCalls {
  readonly #open = new LazyMap<string, AgentCall>()
  /** The call around each path that was asked for. */
  readonly #around = new LazyMap<string, AgentCall | null>()

  start(entry: EntryOf<'step-start'>): AgentCall | undefined {
    if (!callsAgent(entry)) return undefined
    const { step: path, agent = '', toolCallId = '', toolName = agent, timestamp: startedAt } = entry
    const call: AgentCall = { path, agent, toolCallId, toolName, startedAt, parent: this.around(path) }
    this.#open.set(path, call)
    this.#around.clear()
    return call
  }

  at(path: string): AgentCall | undefined {
    return this.#open.get(path)
  }

  around(path: string): AgentCall | undefined {
    if (this.#open.size === 0) return undefined
    const known = this.#around.get(path)
    if (known !== undefined) return known ?? undefined
    let found: AgentCall | undefined
    for (let at = parentPath(path); at !== '' && found === undefined; at = parentPath(at)) found = this.#open.get(at)
    this.#around.set(path, found ?? null)
    return found
  }

  under(path: string): AgentCall[] {
    return [...this.#open.values()].filter((call) => isUnder(call.path, path))
  }

  end(path: string): void {
    if (this.#open.delete(path)) this.#around.clear()
  }
}
