/**
 * A run's state: a fold of its log. A new run, a resumed run and a recovered run differ only in how many entries were applied
 * before the runner starts.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import { createOpenItems, type OpenItems } from '../fold/open-items.ts'
import { isUnder, parentPath } from '../part/path.ts'
import { createTurns, type Turns } from '../fold/turns.ts'
import { addUsage, type Usage } from '../part/usage.ts'
import { createCallIds, type CallIds } from './call-ids.ts'
import { handedOn, recovered } from './recovery.ts'

export interface RunState {
  readonly open: OpenItems
  readonly start: EntryOf<'run-start'> | undefined
  /** The input of `run-start`, merged with that of each `resume`. */
  readonly input: Record<string, unknown>
  /** The input as of an entry. */
  inputAt(seq: number): Record<string, unknown>
  readonly lastSeq: number
  /** Epoch ms of the last entry; 0 before the first. */
  readonly lastTimestamp: number
  /** Finished steps by path. */
  readonly finished: ReadonlyMap<string, EntryOf<'step-finish'>>
  /** How often the run was recovered since a step or tool call last finished. */
  readonly recoveries: number
  /** How often a step was reset. */
  readonly resets: ReadonlyMap<string, number>
  readonly usage: Usage | undefined
  /** USD; undefined once any call's price is unknown, 0 before the first. */
  readonly cost: number | undefined
  readonly end: EntryOf<'run-end'> | undefined
  /** The usage of each model call. */
  readonly calls: readonly EntryOf<'usage'>[]
  /** The texts of called agents by the path of the call. */
  readonly calledPipelines: ReadonlyMap<string, string>
  readonly callIds: CallIds
  /** The lists that loops iterate over, by path. */
  readonly lists: ReadonlyMap<string, readonly unknown[]>
  /** Whether a step was ever started. */
  has(path: string): boolean
  /** Counts the model calls and tool calls started at or under a path. A second attempt is the same call. */
  countCalls(root: string): number
  /** ms for which the run was suspended since a moment (epoch ms). No timeout counts this time. */
  suspendedSince(moment: number): number
  /** The tool loop of an `llm` or `router` step. */
  turns(path: string): Turns
  /** All tool loops. */
  loops(): Iterable<Turns>
  apply(entry: Entry): void
}

/** Steps with a tool loop. */
const loopTypes: ReadonlySet<string> = new Set(['llm', 'router'])
const callTypes: ReadonlySet<string> = new Set(['model-call', 'tool-call', 'client-tool'])

export function createRunState(): RunState {
  const open = createOpenItems()
  const finished = new Map<string, EntryOf<'step-finish'>>()
  const resets = new Map<string, number>()
  const started = new Set<string>()
  const begun = new Set<string>()
  const inputs: { seq: number; input: Record<string, unknown> }[] = []
  const suspensions: { from: number; to: number }[] = []
  const calls: EntryOf<'usage'>[] = []
  const calledPipelines = new Map<string, string>()
  const callIds = createCallIds()
  const lists = new Map<string, readonly unknown[]>()
  const loops = new Map<string, Turns>()
  // One path may get thousands of deltas: looking up their loop must not split strings each time.
  const loopOf = new Map<string, Turns | null>()
  const state = {
    open,
    start: undefined as EntryOf<'run-start'> | undefined,
    end: undefined as EntryOf<'run-end'> | undefined,
    input: {} as Record<string, unknown>,
    lastSeq: 0,
    lastTimestamp: 0,
    recoveries: 0,
    usage: undefined as Usage | undefined,
    cost: 0 as number | undefined,
    finished,
    resets,
    calls,
    calledPipelines,
    callIds,
    lists,
    has: (path: string) => started.has(path),
    countCalls: (root: string) => (root === '' ? begun.size : [...begun].filter((path) => isUnder(path, root)).length),
    suspendedSince: (moment: number) =>
      suspensions.reduce((sum, { from, to }) => sum + Math.max(0, to - Math.max(from, moment)), 0),
    turns,
    loops: () => loops.values(),
    inputAt,
    apply,
  }

  function inputAt(seq: number): Record<string, unknown> {
    return inputs.findLast((each) => each.seq <= seq)?.input ?? {}
  }

  function turns(path: string): Turns {
    let loop = loops.get(path)
    if (loop === undefined) {
      loop = createTurns(path)
      loops.set(path, loop)
      loopOf.clear()
    }
    return loop
  }

  function apply(entry: Entry): void {
    state.lastSeq = entry.seq
    state.lastTimestamp = Math.max(state.lastTimestamp, entry.timestamp)
    const { step } = entry
    if (entry.type === 'step-start' && loopTypes.has(entry.stepType)) turns(step)
    let loop = loopOf.get(step)
    if (loop === undefined) {
      loop = loops.get(step) ?? loops.get(parentPath(step)) ?? null
      loopOf.set(step, loop)
    }
    loop?.apply(entry)
    if (entry.type === 'text-delta' || entry.type === 'reasoning-delta') return
    if (isProgress(entry)) state.recoveries = 0
    open.apply(entry)
    callIds.apply(entry)
    switch (entry.type) {
      case 'run-start':
        state.start = entry
        state.input = entry.input
        inputs.push({ seq: entry.seq, input: state.input })
        break
      case 'suspend':
        suspensions.push({ from: entry.timestamp, to: entry.timestamp })
        break
      case 'resume': {
        state.input = { ...state.input, ...entry.input }
        inputs.push({ seq: entry.seq, input: state.input })
        const last = suspensions.at(-1)
        if (last !== undefined) last.to = entry.timestamp
        break
      }
      case 'step-start':
        started.add(step)
        if (callTypes.has(entry.stepType)) begun.add(step)
        if (entry.pipeline !== undefined) calledPipelines.set(step, entry.pipeline)
        if (entry.items !== undefined) lists.set(step, entry.items)
        break
      case 'step-finish':
        finished.set(step, entry)
        break
      case 'step-reset':
        resets.set(step, (resets.get(step) ?? 0) + 1)
        break
      case 'usage':
        calls.push(entry)
        state.usage = addUsage(state.usage, entry.usage)
        state.cost = state.cost === undefined || entry.cost === undefined ? undefined : state.cost + entry.cost
        break
      case 'warning':
        if (step === '' && entry.code === recovered.code) state.recoveries++
        else if (step === '' && entry.code === handedOn.code) state.recoveries = 0
        break
      case 'run-end':
        state.end = entry
        break
      default:
    }
  }

  /** A model call alone is not progress: the model may repeat a tool call that crashes the server. */
  function isProgress(entry: Entry): boolean {
    if (entry.type === 'tool-result') return entry.outcome === undefined && entry.preliminary !== true
    return entry.type === 'step-finish' && !callTypes.has(open.steps.get(entry.step)?.stepType ?? '')
  }

  return state
}

/** Reads a run's log and folds it into its state. */
export async function foldState(log: Log, run: string): Promise<RunState> {
  const state = createRunState()
  for await (const batch of log.read(run)) for (const entry of batch) state.apply(entry)
  return state
}
