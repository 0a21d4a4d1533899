/**
 * Agents that a model has called as tools, as subagents of AG-UI 1.0: SUBAGENT_STARTED, then SUBAGENT_FINISHED or SUBAGENT_ERROR. A subagent is
 * closed before the end of each AG-UI run. If it only waits, the next AG-UI run starts it again under the same id.
 */
import { createAgentCalls, type AgentCall } from '../../fold/agent-calls.ts'
import { LazyMap, LazySet } from '../../fold/lazy-map.ts'
import type { EntryOf } from '../../part/entry.ts'
import { messageOf } from '../../part/error.ts'
import type { AgUiOut } from './ag-ui-event.ts'

/** The call that started a subagent, as the client knows it. */
export interface ParentCall {
  parentToolCallId?: string
  parentMessageId?: string
}

export interface AgUiSubagents {
  begin(runId: string): void
  /** The id of the subagent that works at a path. */
  idAt(path: string): string | undefined
  /** Announces the subagent, if the step calls one. `parent` is asked for each announcement. */
  start(entry: EntryOf<'step-start'>, parent: (call: AgentCall) => ParentCall): void
  /** The open subagent of this call. */
  at(path: string): AgentCall | undefined
  /** Ends the subagent of this call, and those in it. Call it before the result of the call is sent. */
  finish(call: AgentCall, result: EntryOf<'tool-result'>): void
  /** The step is over, with or without a result. */
  end(path: string): void
  /** The AG-UI run ends, but those that are open wait. `raised`: the interrupts that a subagent itself has raised. */
  suspend(raised: (subagentRunId: string) => string[]): void
  /** Another AG-UI run begins: announces those that are open. */
  resume(): void
  /** Ends all at and under a path, as failed. */
  fail(error: { message: string; code: string }, path?: string): void
}

export function createAgUiSubagents(out: AgUiOut): AgUiSubagents {
  return new Subagents(out)
}

/** For clients older than 1.0, which know no subagents. */
export const noSubagents: AgUiSubagents = {
  begin: () => undefined,
  idAt: () => undefined,
  start: () => undefined,
  at: () => undefined,
  finish: () => undefined,
  end: () => undefined,
  suspend: () => undefined,
  resume: () => undefined,
  fail: () => undefined,
}

interface Subagent {
  call: AgentCall
  id: string
  parent(call: AgentCall): ParentCall
}

/** A class, not closures: one for each open stream (decisions/0028). */
class Subagents implements AgUiSubagents {
  readonly #out: AgUiOut
  readonly #calls = createAgentCalls()
  /** By path, outer ones first. */
  readonly #open = new LazyMap<string, Subagent>()
  /** Paths of those that the client's current AG-UI run has started. */
  readonly #announced = new LazySet<string>()
  /** How often a path has started: a subagent after a crash is another one, because an id may start only once. */
  readonly #starts = new LazyMap<string, number>()
  #runId = ''

  constructor(out: AgUiOut) {
    this.#out = out
  }

  begin(runId: string): void {
    this.#runId = runId
  }

  idAt(path: string): string | undefined {
    const call = this.#calls.around(path)
    return call && this.#open.get(call.path)?.id
  }

  start(entry: EntryOf<'step-start'>, parent: Subagent['parent']): void {
    const call = this.#calls.start(entry)
    if (call === undefined) return
    const { path } = call
    const n = (this.#starts.get(path) ?? 0) + 1
    this.#starts.set(path, n)
    const id = `${this.#runId}:${path.startsWith('main/') ? path.slice('main/'.length) : path}${n === 1 ? '' : `~${n}`}`
    const subagent = { call, id, parent }
    this.#open.set(path, subagent)
    this.#announce(subagent)
  }

  #announce({ call, id: subagentRunId, parent }: Subagent): void {
    this.#announced.add(call.path)
    const parentSubagentRunId = call.parent && this.#open.get(call.parent.path)?.id
    this.#out.send({ type: 'SUBAGENT_STARTED', subagentRunId, name: call.agent, parentSubagentRunId, ...parent(call) })
  }

  at(path: string): AgentCall | undefined {
    return this.#calls.at(path)
  }

  finish(call: AgentCall, { result, isError, outcome }: EntryOf<'tool-result'>): void {
    const error = { message: messageOf(result), code: outcome ?? 'failed' }
    for (const { path } of this.#calls.under(call.path)) if (path !== call.path) this.fail(error, path)
    const subagentRunId = this.#open.get(call.path)?.id
    if (subagentRunId !== undefined && this.#announced.delete(call.path)) {
      if (isError === true) this.#out.send({ type: 'SUBAGENT_ERROR', subagentRunId, ...error })
      else this.#out.send({ type: 'SUBAGENT_FINISHED', subagentRunId, result, outcome: { type: 'success' } })
    }
    this.#forget(call.path)
  }

  #forget(path: string): void {
    this.#open.delete(path)
    this.#calls.end(path)
  }

  end(path: string): void {
    if (this.#open.has(path)) this.fail({ message: 'The agent ended without a result.', code: 'failed' }, path)
  }

  suspend(raised: (subagentRunId: string) => string[]): void {
    for (const { call, id: subagentRunId } of [...this.#open.values()].reverse()) {
      if (!this.#announced.delete(call.path)) continue
      const interruptIds = raised(subagentRunId)
      const outcome = { type: 'suspended' as const, ...(interruptIds.length > 0 && { interruptIds }) }
      this.#out.send({ type: 'SUBAGENT_FINISHED', subagentRunId, outcome })
    }
  }

  resume(): void {
    for (const subagent of this.#open.values()) this.#announce(subagent)
  }

  fail(error: { message: string; code: string }, root = ''): void {
    for (const { path } of this.#calls.under(root).reverse()) {
      const subagentRunId = this.#open.get(path)?.id
      if (subagentRunId !== undefined && this.#announced.delete(path))
        this.#out.send({ type: 'SUBAGENT_ERROR', subagentRunId, ...error })
      this.#forget(path)
    }
  }
}
