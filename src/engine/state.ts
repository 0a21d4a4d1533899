/**
 * A run's state: a fold of its log. A new run, a resumed run and a recovered run differ only in how many entries were applied
 * before the runner starts.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import { isUnder } from '../part/path.ts'
import { kindOf, type StepKind } from '../part/step-kind.ts'
import { foldRun, type FoldedRun } from '../fold/run-fold.ts'
import type { ToolLoop } from '../fold/tool-loop.ts'
import { createCallIds, type CallIds } from '../fold/call-ids.ts'
import { forkedCode, handedOn, recovered } from './recovery.ts'
import { LateMap, LateSet } from '../fold/late-map.ts'

/** The fold of the run, and what only the engine needs. */
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
  /** Its last owner left it between two steps, for the next one. */
  readonly isHandedOn: boolean
  /** The codes of the run's own warnings. */
  readonly warnings: Pick<ReadonlySet<string>, 'has'>
  /** How often a step was reset. */
  readonly resets: ReadonlyMap<string, number>
  /** The usage of each model call. */
  readonly calls: readonly EntryOf<'usage'>[]
  /** The texts of called agents by the path of the call. */
  readonly calledPipelines: ReadonlyMap<string, string>
  readonly callIds: CallIds
  /** The values that steps have asked for, by path, in order. */
  readonly asked: ReadonlyMap<string, readonly AskedValue[]>
  /** The lists that loops iterate over, by path. */
  readonly lists: ReadonlyMap<string, readonly unknown[]>
  /** Whether a step was ever started. */
  has(path: string): boolean
  /** Counts the model calls and tool calls started at or under a path. A second attempt is the same call. */
  countCalls(root: string): number
  /** ms for which the run was suspended since a moment (epoch ms). No timeout counts this time. */
  suspendedSince(moment: number): number
  /** The tool loops of all `llm` and `router` steps. */
  toolLoops(): ToolLoop[]
}

export interface AskedValue {
  request: EntryOf<'request'>
  response?: EntryOf<'response'>
}

/** Steps with a tool loop. */
const loopKinds: ReadonlySet<StepKind | undefined> = new Set(['tool-loop', 'router'])
const callKinds: ReadonlySet<StepKind | undefined> = new Set(['model-call', 'tool-call', 'client-tool'])

export function createRunState(): RunState {
  const fold = foldRun((start) => loopKinds.has(kindOf(start)))
  const { steps, loops, apply: applyToFold } = fold
  const finished = new LateMap<string, EntryOf<'step-finish'>>()
  const warnings = new LateSet<string>()
  const resets = new LateMap<string, number>()
  const begun = new Set<string>()
  const inputs: { seq: number; input: Record<string, unknown> }[] = []
  const suspensions: { from: number; to: number }[] = []
  const calls: EntryOf<'usage'>[] = []
  const calledPipelines = new LateMap<string, string>()
  const callIds = createCallIds()
  const asked = new LateMap<string, AskedValue[]>()
  const ownHeaders = new LateSet<string>()
  const lists = new LateMap<string, readonly unknown[]>()
  // The same object as the fold, so that nothing is held or copied twice.
  const state = Object.assign(fold, {
    input: {} as Record<string, unknown>,
    lastTimestamp: 0,
    recoveries: 0,
    isHandedOn: false,
    finished,
    warnings,
    resets,
    calls,
    calledPipelines,
    callIds,
    asked,
    lists,
    ownHeaders,
    has: (path: string) => steps.has(path),
    countCalls: (root: string) => (root === '' ? begun.size : [...begun].filter((path) => isUnder(path, root)).length),
    suspendedSince: (moment: number) =>
      suspensions.reduce((sum, { from, to }) => sum + Math.max(0, to - Math.max(from, moment)), 0),
    toolLoops: () => [...loops.values()].filter(({ root }) => loopKinds.has(steps.get(root)?.kind)),
    inputAt,
    apply,
  })

  function inputAt(seq: number): Record<string, unknown> {
    return inputs.findLast((each) => each.seq <= seq)?.input ?? {}
  }

  function apply(entry: Entry): void {
    const before = state.lastTimestamp
    state.lastTimestamp = Math.max(state.lastTimestamp, entry.timestamp)
    if (entry.type === 'text-delta' || entry.type === 'reasoning-delta') {
      applyToFold(entry)
      return
    }
    state.isHandedOn = false
    if (isProgress(entry)) state.recoveries = 0
    applyToFold(entry)
    callIds.apply(entry)
    const { step } = entry
    switch (entry.type) {
      case 'run-start':
        state.input = entry.input
        for (const name of entry.ownHeaders ?? []) ownHeaders.add(name)
        inputs.push({ seq: entry.seq, input: state.input })
        break
      case 'suspend':
        suspensions.push({ from: entry.timestamp, to: entry.timestamp })
        break
      case 'resume': {
        state.input = { ...state.input, ...entry.input }
        for (const name of entry.ownHeaders ?? []) ownHeaders.add(name)
        inputs.push({ seq: entry.seq, input: state.input })
        const last = suspensions.at(-1)
        if (last !== undefined) last.to = entry.timestamp
        break
      }
      case 'step-start':
        if (callKinds.has(kindOf(entry))) begun.add(step)
        if (entry.pipeline !== undefined) calledPipelines.set(step, entry.pipeline)
        if (entry.items !== undefined) lists.set(step, entry.items)
        break
      case 'step-finish':
        finished.set(step, entry)
        break
      case 'request':
        if (entry.kind === 'input') asked.set(step, [...(asked.get(step) ?? []), { request: entry }])
        break
      case 'response': {
        const value = asked.get(step)?.find(({ request }) => request.requestId === entry.requestId)
        if (value !== undefined) value.response = entry
        break
      }
      case 'step-reset':
        for (const path of asked.keys()) if (isUnder(path, step)) asked.delete(path)
        resets.set(step, (resets.get(step) ?? 0) + 1)
        break
      case 'usage':
        calls.push(entry)
        break
      case 'warning':
        if (step !== '') break
        warnings.add(entry.code)
        // Until it was forked nobody worked on it.
        if (entry.code === forkedCode && !state.open.suspended) suspensions.push({ from: before, to: entry.timestamp })
        if (entry.code === recovered.code) state.recoveries++
        else if (entry.code === handedOn.code) {
          state.recoveries = 0
          state.isHandedOn = true
        }
        break
      default:
    }
  }

  /** A model call alone is not progress: the model may repeat a tool call that crashes the server. */
  function isProgress(entry: Entry): boolean {
    if (entry.type === 'tool-result') return entry.outcome === undefined && entry.preliminary !== true
    return entry.type === 'step-finish' && !callKinds.has(steps.get(entry.step)?.kind)
  }

  return state
}

/** Reads a run's log and folds it into its state. */
export async function foldState(log: Log, run: string): Promise<RunState> {
  const state = createRunState()
  for await (const batch of log.read(run)) for (const entry of batch) state.apply(entry)
  return state
}
