/**
 * A run's state: a fold of its log. A new run, a resumed run and a recovered run differ only in how many entries were applied
 * before the runner starts.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { kindOf, type StepKind } from '../part/step-kind.ts'
import { FoldingRun, type FoldedRun } from '../fold/run-fold.ts'
import type { ToolLoop } from '../fold/tool-loop.ts'
import { createCallIds, type CallIds } from '../fold/call-ids.ts'
import { LazyMap, LazySet } from '../fold/lazy-map.ts'
import type { Part, ScriptStart } from '../part/part.ts'
import type { ModelReply } from '../fold/reply-messages.ts'
import { toldMessages } from '../fold/whole-prompt.ts'
import { addUsage, estimateUsage, type Usage } from '../part/usage.ts'

/** The fold of the run, with fields that only the engine needs. */
export interface RunState extends FoldedRun {
  /** The input of `run-start`, merged with that of each `resume`. */
  readonly input: Record<string, unknown>
  /** MCP servers for which the run's requests brought headers of their own. */
  readonly ownHeaders: Iterable<string>
  /** The input as of an entry. */
  inputAt(seq: number): Record<string, unknown>
  /** Epoch ms of the last entry; 0 before the first. */
  readonly lastTimestamp: number
  /** Finished steps by path. */
  readonly finished: ReadonlyMap<string, EntryOf<'step-finish'>>
  /** How often the run was recovered since a step or tool call last finished. */
  readonly recoveries: number
  /** Its last owner released it between two steps. */
  readonly isHandedOn: boolean
  /** The codes of the run's own warnings. */
  readonly warnings: Pick<ReadonlySet<string>, 'has'>
  /** How often a step was reset. */
  readonly resets: ReadonlyMap<string, number>
  /** The usage of each model call. */
  readonly calls: readonly EntryOf<'usage'>[]
  /** It was recorded elsewhere and not accepted here: programs that its entries name must not run. */
  readonly isForeign: boolean
  /** The texts of called agents by the path of the call. */
  readonly calledPipelines: ReadonlyMap<string, string>
  /** The agents that took over without a call, by path: see `sticky`. */
  readonly takenOver: Pick<ReadonlyMap<string, string>, 'get'>
  /** The paths of calls of agent tools. */
  readonly agentCalls: Iterable<string>
  readonly callIds: CallIds
  /** The values that steps have requested, by path, in order. */
  readonly asked: ReadonlyMap<string, readonly AskedValue[]>
  /** Messages that were sent while the run was active, by id: delivered ones, and those that will not be. */
  readonly messages: ReadonlyMap<string, EntryOf<'message'>>
  /** The starts of scripts, by path. */
  readonly scripts: Pick<ReadonlyMap<string, ScriptBegin>, 'get'>
  /** How many lines each script has written to its console, by path. */
  readonly consoleLines: Pick<ReadonlyMap<string, number>, 'get'>
  /** The lists that loops iterate over, by path. */
  readonly lists: ReadonlyMap<string, readonly unknown[]>
  /** Whether a step was ever started. */
  has(path: string): boolean
  /** Counts the model calls and tool calls started at or under a path. A second attempt is the same call. */
  countCalls(root: string): number
  /** The sum of what the finished steps below a path report. Of a tool loop it reads only what finished while the loop was open. */
  usageBelow(root: string): Usage | undefined
  /** ms for which the run was suspended since a moment (epoch ms). No timeout counts this time. */
  suspendedSince(moment: number): number
  /** The tool loops of all `llm` and `router` steps. */
  toolLoops(): ToolLoop[]
}

export interface ScriptBegin extends ScriptStart {
  /** Of its `step-start`. */
  seq: number
  timestamp: number
}

export interface AskedValue {
  request: EntryOf<'request'>
  response?: EntryOf<'response'>
}

/** The name of the `data` parts with what a script writes to its console. */
export const consoleName = 'console'

/** Steps with a tool loop. */
const loopKinds: ReadonlySet<StepKind | undefined> = new Set(['tool-loop', 'router', 'summary'])
const callKinds: ReadonlySet<StepKind | undefined> = new Set(['model-call', 'tool-call', 'client-tool'])

export function createRunState(): RunState {
  return new EngineState()
}

const hasLoop = (start: EntryOf<'step-start'>) => loopKinds.has(kindOf(start)) || kindOf(start) === 'script'

/** A class, not closures, with `private` fields: one for each open stream (decisions/0028). */
class EngineState extends FoldingRun implements RunState {
  input: Record<string, unknown> = {}
  lastTimestamp = 0
  recoveries = 0
  isHandedOn = false
  isForeign = false
  readonly finished = new LazyMap<string, EntryOf<'step-finish'>>()
  readonly warnings = new LazySet<string>()
  readonly resets = new LazyMap<string, number>()
  readonly calls: EntryOf<'usage'>[] = []
  readonly calledPipelines = new LazyMap<string, string>()
  readonly agentCalls = new LazySet<string>()
  readonly takenOver = new LazyMap<string, string>()
  readonly callIds = createCallIds()
  readonly asked = new LazyMap<string, AskedValue[]>()
  readonly messages = new LazyMap<string, EntryOf<'message'>>()
  readonly scripts = new LazyMap<string, ScriptBegin>()
  readonly consoleLines = new LazyMap<string, number>()
  readonly lists = new LazyMap<string, readonly unknown[]>()
  readonly ownHeaders = new LazySet<string>()
  private readonly begun = new Set<string>()
  /** How many of `begun` are at or under each path. Made when somebody first asks: most runs have no budget of steps. */
  private begunUnder: Map<string, number> | undefined = undefined
  /** Finished steps that report usage, in order, and the part of the list that finished while a tool loop was open. */
  private readonly reports: EntryOf<'step-finish'>[] = []
  private readonly reported = new LazyMap<string, { from: number; to: number }>()
  private readonly inputs: { seq: number; input: Record<string, unknown> }[] = []
  private readonly suspensions: { from: number; to: number }[] = []

  constructor() {
    super(hasLoop)
  }

  has(path: string): boolean {
    return this.steps.has(path)
  }

  countCalls(root: string): number {
    if (root === '') return this.begun.size
    if (this.begunUnder === undefined) {
      this.begunUnder = new Map()
      for (const path of this.begun) countIn(this.begunUnder, path)
    }
    return this.begunUnder.get(root) ?? 0
  }

  usageBelow(root: string): Usage | undefined {
    const { from = 0, to = Infinity } = this.reported.get(root) ?? {}
    let sum: Usage | undefined
    for (let i = from; i < Math.min(to, this.reports.length); i++) {
      const report = this.reports[i]!
      const { step } = report
      // Of a step that was made again the last end counts.
      if (isUnder(step, root) && step !== root && this.finished.get(step) === report) sum = addUsage(sum, report.usage!)
    }
    return sum
  }

  suspendedSince(moment: number): number {
    return this.suspensions.reduce((sum, { from, to }) => sum + Math.max(0, to - Math.max(from, moment)), 0)
  }

  toolLoops(): ToolLoop[] {
    return [...this.loops.values()].filter(({ root }) => loopKinds.has(this.steps.get(root)?.kind))
  }

  inputAt(seq: number): Record<string, unknown> {
    return this.inputs.findLast((each) => each.seq <= seq)?.input ?? {}
  }

  override apply(entry: Entry): void {
    const before = this.lastTimestamp
    // Large numbers are heap objects in V8: entries of a burst share one.
    if (entry.timestamp > before) this.lastTimestamp = entry.timestamp
    if (entry.type === 'text-delta' || entry.type === 'reasoning-delta') {
      super.apply(entry)
      return
    }
    this.isHandedOn = false
    if (this.isProgress(entry)) this.recoveries = 0
    super.apply(entry)
    this.callIds.apply(entry)
    const { step } = entry
    switch (entry.type) {
      case 'run-start':
        this.input = entry.input
        this.isForeign = entry.foreign !== undefined
        for (const name of entry.ownHeaders ?? []) this.ownHeaders.add(name)
        this.inputs.push({ seq: entry.seq, input: this.input })
        break
      case 'suspend':
        this.suspensions.push({ from: entry.timestamp, to: entry.timestamp })
        break
      case 'resume': {
        // A resume without input changes nothing.
        if (entry.input !== undefined) this.input = { ...this.input, ...entry.input }
        for (const name of entry.ownHeaders ?? []) this.ownHeaders.add(name)
        this.inputs.push({ seq: entry.seq, input: this.input })
        // Only a `resume` may follow an import: this one names the text with which the run continues.
        if (entry.pipeline !== undefined && entry.seq > (this.start?.foreign ?? 0)) this.isForeign = false
        const last = this.suspensions.at(-1)
        if (last !== undefined) last.to = entry.timestamp
        break
      }
      case 'step-start':
        this.noteStart(entry)
        if (entry.pipeline !== undefined) this.calledPipelines.set(step, entry.pipeline)
        if (entry.agent !== undefined && entry.toolCallId !== undefined) this.agentCalls.add(step)
        else if (entry.agent !== undefined && entry.handoff === true) this.takenOver.set(step, entry.agent)
        if (entry.items !== undefined) this.lists.set(step, entry.items)
        if (entry.script !== undefined)
          this.scripts.set(step, { ...entry.script, seq: entry.seq, timestamp: entry.timestamp })
        break
      case 'step-finish': {
        this.finished.set(step, entry)
        // A loop's sum is that of its model calls, and of the agents that it has called.
        if (entry.usage !== undefined && !loopKinds.has(this.steps.get(step)?.kind)) this.reports.push(entry)
        const range = this.reported.get(step)
        if (range !== undefined) range.to = this.reports.length
        break
      }
      case 'request':
        if (entry.kind === 'input') this.asked.set(step, [...(this.asked.get(step) ?? []), { request: entry }])
        break
      case 'response': {
        const value = this.asked.get(step)?.find(({ request }) => request.requestId === entry.requestId)
        if (value !== undefined) value.response = entry
        break
      }
      case 'data':
        if (entry.name === consoleName) this.consoleLines.set(step, (this.consoleLines.get(step) ?? 0) + 1)
        break
      case 'step-reset':
        for (const path of this.asked.keys()) if (isUnder(path, step)) this.asked.delete(path)
        this.resets.set(step, (this.resets.get(step) ?? 0) + 1)
        break
      case 'usage':
        this.calls.push(entry)
        break
      case 'message':
        this.messages.set(entry.id, entry)
        break
      case 'warning':
        if (step === '') this.warn(entry, before)
        break
      default:
    }
  }

  private noteStart(entry: EntryOf<'step-start'>): void {
    const { step } = entry
    const kind = kindOf(entry)
    if (callKinds.has(kind) && !this.begun.has(step)) {
      this.begun.add(step)
      if (this.begunUnder !== undefined) countIn(this.begunUnder, step)
    }
    if (!loopKinds.has(kind)) return
    const range = this.reported.get(step)
    // Another attempt: what the earlier ones have spent counts as well.
    if (range === undefined) this.reported.set(step, { from: this.reports.length, to: Infinity })
    else range.to = Infinity
  }

  /** `before`: the time of the previous entry. */
  private warn({ code, timestamp }: EntryOf<'warning'>, before: number): void {
    this.warnings.add(code)
    // Before it was forked, the time does not count.
    if (code === forkedCode && !this.open.suspended) this.suspensions.push({ from: before, to: timestamp })
    if (code === recovered.code) this.recoveries++
    else if (code === handedOn.code) {
      this.recoveries = 0
      this.isHandedOn = true
    }
  }

  /** A model call alone is not progress: the model may repeat a tool call that crashes the server. */
  private isProgress(entry: Entry): boolean {
    if (entry.type === 'tool-result') return entry.outcome === undefined && entry.preliminary !== true
    return entry.type === 'step-finish' && !callKinds.has(this.steps.get(entry.step)?.kind)
  }
}

function countIn(counts: Map<string, number>, path: string): void {
  for (let at = path; at !== ''; at = parentPath(at)) counts.set(at, (counts.get(at) ?? 0) + 1)
}

/** Reads a run's log and folds it into its state. */
export async function foldState(log: Log, run: string): Promise<RunState> {
  const state = createRunState()
  for await (const batch of log.read(run)) for (const entry of batch) state.apply(entry)
  return state
}

/*
 * Warnings that a run records about itself. The log counts those of a crash, so that a run which crashes its server
 * does not crash it at every start.
 */

/** Maximum number of recoveries in a row without progress. After that the run is ended. */
export const mostRecoveries = 3

export const recovered: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'recovered',
  message: 'The server stopped while the run was active. The run continues from its log.',
}

/** An orderly shutdown is not a crash, so it is not counted. */
export const handedOn: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'server-stopped',
  message: 'The server was shut down. The run continues elsewhere, or at the next start.',
}

/** The code of the warning with which a fork continues. */
export const forkedCode = 'forked'

/** The history that `history: server` gave to the model is incomplete. */
export const historyCut: Extract<Part, { type: 'warning' }> = {
  type: 'warning',
  code: 'history-cut',
  message: 'The conversation is too long to be sent to the model whole. Its oldest turns were left out.',
}

/** Estimates the usage of an interrupted model call from its log entries, because the provider reports none. */
export function estimateReply(loop: ToolLoop, reply: ModelReply): Usage {
  const { base, list } = loop
  const { early, shortened, summary } = loop
  const sent = toldMessages({ base, early, shortened, summary, list: list.slice(0, list.indexOf(reply)) }, [])
  const input = JSON.stringify(sent).length + (base?.system?.length ?? 0)
  let output = 0
  for (const part of reply.content) {
    if (part.type === 'text' || part.type === 'reasoning') output += part.text.length
    else if (part.type === 'tool-call') output += JSON.stringify(part.input)?.length ?? 0
  }
  return estimateUsage(input, output)
}

/** The missing `usage` of a call. Undefined if it was reported, or if the call was never sent. */
export function missingUsage(loop: ToolLoop, reply: ModelReply): Extract<Part, { type: 'usage' }> | undefined {
  if (reply.model === undefined || reply.usage !== undefined) return undefined
  return { type: 'usage', model: reply.model, usage: reply.finish?.usage ?? estimateReply(loop, reply) }
}

/** The missing `usage` of every open call at or under a path, for when its step is closed from outside. */
export function missingUsages(state: RunState, root = ''): { step: string; part: Part }[] {
  const { open } = state
  return state.toolLoops().flatMap((loop) => {
    const reply = loop.list.at(-1)
    const part =
      reply !== undefined && open.steps.has(reply.path) && isUnder(reply.path, root)
        ? missingUsage(loop, reply)
        : undefined
    return part === undefined ? [] : [{ step: reply!.path, part }]
  })
}
