import { traceparentAt } from '../fold/trace-place.ts'
import type { Scope } from './scope.ts'

/**
 * What a step hands on to model servers, tools and programs, so that their spans are below its own. Without export of spans, the
 * caller's place is handed on as it came: nobody would know a span of ours.
 */
export function traceparentOf(
  { registry, state }: Pick<Scope, 'registry' | 'state'>,
  path: string,
): string | undefined {
  const { start, resets } = state
  if (start === undefined || registry.traces !== true) return start?.traceparent
  return traceparentAt(start, path, resets)
}
