/** The thread that a caller names, and the names that callers see. */
import { decide } from '../../access/decide.ts'
import { hideDetails } from '../../access/hide-texts.ts'
import type { RunRow } from '../../part/log.ts'
import { plainThread, roleOf } from '../../part/principal.ts'
import type { RequestContext } from '../handler-context.ts'

/**
 * The id in the log of the thread that a caller names to read it. A user's `1` is its own. An operator, who sees those of others, names them as the
 * log does; what is not there so may be one of its own.
 */
export async function threadNamed(
  { runtime, principal }: Pick<RequestContext, 'runtime' | 'principal'>,
  id: string,
): Promise<string> {
  const own = runtime.threadId(id)
  if (own === id || roleOf(principal) === 'user') return own
  const [row] = await runtime.store.runs.list({ threadId: id, limit: 1 })
  return row === undefined ? own : id
}

/** The name of a thread for this caller: a user sees its own threads as it has named them. */
export function shownThread({ principal }: Pick<RequestContext, 'principal'>, id: string): string {
  return principal.id !== '' && roleOf(principal) === 'user' ? plainThread(id) : id
}

/** A row with the thread as the caller names it. */
export function withShownThread<T extends { threadId: string }>(context: Pick<RequestContext, 'principal'>, row: T): T {
  const threadId = shownThread(context, row.threadId)
  return threadId === row.threadId ? row : { ...row, threadId }
}

/** A row of the whole store as the caller sees it. */
export function shownRow(context: Pick<RequestContext, 'principal'>, row: RunRow): RunRow {
  const shown = withShownThread(context, row)
  return decide(context.principal, 'agents.read') === 'allow' ? shown : hideDetails(shown)
}
