/** The spans of a run that are open and that have ended. A key is the path of a step, empty for the run, or that of a call. */
import type { EntryOf } from '../../part/entry.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import { resetsAt, spanIdOf, traceRootOf } from '../../fold/trace-place.ts'
import { groupAttributes } from './attributes.ts'
import type { Attributes, Span } from './span.ts'

export interface OpenSpans {
  get(key: string): Span | undefined
  /** `path`: of the step that the span belongs to. Its parent is the innermost open step at or above `above`. */
  begin(key: string, place: { path: string; above?: string; at: number }, given: Named): Span
  end(key: string, at: number, attributes?: Attributes): Span | undefined
  /** Ends everything at or under a path, except the run. */
  endUnder(path: string, at: number, attributes?: Attributes): void
  /** What the step had emitted is superseded. */
  reset(entry: EntryOf<'step-reset'>): void
  /** A fork begins here: what has ended is its source's, and what is open goes on from here. */
  cut(at: number): void
  /** The innermost open span at or above a path. */
  around(path: string): Span | undefined
  /** Those that are open end at `lastAt`. */
  all(lastAt: number): Span[]
}

export type Named = Pick<Span, 'name' | 'kind' | 'attributes'>

/** `onEnd`: called with the key of each span that ends. */
export function createOpenSpans(run: EntryOf<'run-start'>, onEnd: (key: string) => void): OpenSpans {
  const groups = groupAttributes(run)
  const { traceId, parentSpanId, sampled } = traceRootOf(run)
  const done: Span[] = []
  const open = new Map<string, Span>()
  const resets = new Map<string, number>()
  /** Keys of spans that a fork goes on with. */
  const shared = new Set<string>()

  function around(path: string): Span | undefined {
    for (let at = path; at !== ''; at = parentPath(at)) {
      const span = open.get(at)
      if (span !== undefined) return span
    }
    return open.get('')
  }

  function end(key: string, at: number, attributes: Attributes = {}): Span | undefined {
    const span = open.get(key)
    if (span === undefined) return undefined
    open.delete(key)
    onEnd(key)
    span.endedAt = Math.max(at, span.startedAt)
    Object.assign(span.attributes, attributes)
    done.push(span)
    return span
  }

  function endUnder(root: string, at: number, attributes?: Attributes): void {
    // Inner spans have begun later.
    for (const key of [...open.keys()].reverse()) {
      if (key !== '' && isUnder(pathOf(key), root)) end(key, at, attributes)
    }
  }

  return {
    get: (key) => open.get(key),
    begin(key, { path, above, at }, given) {
      const parent = above === undefined ? undefined : around(above)
      const parentId = parent?.spanId ?? parentSpanId
      const span: Span = {
        traceId,
        spanId: spanIdOf(run.runId, key, resetsAt(resets, path)),
        ...(parentId === undefined ? undefined : { parentSpanId: parentId }),
        ...given,
        attributes: { ...given.attributes, ...groups },
        startedAt: at,
        endedAt: at,
        flags: (sampled ? 0x1 : 0) | 0x100 | (parent === undefined && parentSpanId !== undefined ? 0x200 : 0),
        events: [],
      }
      open.set(key, span)
      return span
    },
    end,
    endUnder,
    reset({ step, timestamp }) {
      for (const key of [...shared].filter((each) => each !== '' && isUnder(pathOf(each), step))) {
        shared.delete(key)
        if (open.delete(key)) onEnd(key)
      }
      endUnder(step, timestamp, { 'millrace.superseded': true })
      resets.set(step, (resets.get(step) ?? 0) + 1)
    },
    cut(at) {
      done.length = 0
      for (const [key, span] of open) {
        shared.add(key)
        span.startedAt = Math.max(span.startedAt, at)
        span.events = []
      }
    },
    around,
    all: (lastAt) => [
      ...done,
      ...[...open.values()].map((span) => ({
        ...span,
        endedAt: Math.max(lastAt, span.startedAt),
        attributes: { ...span.attributes, 'millrace.incomplete': true },
      })),
    ],
  }
}

/** Of a call: the step of its loop. */
function pathOf(key: string): string {
  return key.split('\n', 1)[0]!
}
