import { MillraceError } from '../../part/error.ts'
import type { RunRow } from '../../part/log.ts'
import type { HandlerContext } from '../handler-context.ts'

/** The row of a run. Throws `unknown-run`. */
export async function existingRun({ runtime }: Pick<HandlerContext, 'runtime'>, id: string): Promise<RunRow> {
  const row = await runtime.store.runs.get(id)
  if (row === undefined) throw unknownRun(id)
  return row
}

export function unknownRun(id: string): MillraceError {
  return new MillraceError('unknown-run', `There is no run ${id}.`)
}
