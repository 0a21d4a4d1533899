/**
 * The place of a step in a trace. Ids are derived from the run and the path of the step, so a span has the same id whenever it is exported,
 * and a request can name its span before the span exists.
 */
import { parentPath } from '../part/path.ts'

/** W3C Trace Context, taken apart. */
export interface TraceRoot {
  traceId: string
  /** The caller's span. */
  parentSpanId?: string
  /** Whether the caller wants the trace recorded. */
  sampled: boolean
}

/** The trace of a run: the caller's, or a new one. */
export function traceRootOf({ runId, traceparent }: { runId: string; traceparent?: string | undefined }): TraceRoot {
  if (traceparent === undefined) return { traceId: hash(`trace ${runId}`, 4), sampled: true }
  const [, traceId = '', parentSpanId = '', flags = ''] = traceparent.split('-')
  return { traceId, parentSpanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** `path`: of a step, empty for the run. `resets`: how often crashes have superseded the step or a step around it. */
export function spanIdOf(runId: string, path: string, resets: number): string {
  return hash(`span ${resets} ${path} ${runId}`, 2)
}

/** How often a path was reset, including resets of the steps around it. */
export function resetsAt(resets: ReadonlyMap<string, number>, path: string): number {
  if (resets.size === 0) return 0
  let sum = resets.get(path) ?? 0
  for (let at = path; at !== '';) {
    at = parentPath(at)
    sum += resets.get(at) ?? 0
  }
  return sum
}

/** The trace context that a step sends to its callees: its own span as their parent. */
export function traceparentAt(
  run: { runId: string; traceparent?: string | undefined },
  path: string,
  resets: ReadonlyMap<string, number>,
): string {
  const { traceId, sampled } = traceRootOf(run)
  return `00-${traceId}-${spanIdOf(run.runId, path, resetsAt(resets, path))}-${sampled ? '01' : '00'}`
}

/** `words` × 32 bits as hexadecimal digits, never all zero. For ids, not for security. */
function hash(text: string, words: number): string {
  let out = ''
  for (let word = 0; word < words; word++) {
    let h = 0x811c9dc5 ^ Math.imul(word + 1, 0x9e3779b1)
    for (let i = 0; i < text.length; i++) {
      h = Math.imul(h ^ text.charCodeAt(i), 0x5bd1e995)
      h ^= h >>> 15
    }
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
    out += ((h ^ (h >>> 16)) >>> 0).toString(16).padStart(8, '0')
  }
  return /[^0]/u.test(out) ? out : out.replace(/.$/u, '1')
}
