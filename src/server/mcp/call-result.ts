/** The result of a call: that of its run, or why there is none. */
import { readView } from '../../fold/read-view.ts'
import { readStored } from '../../engine/stored-pipeline.ts'
import type { EntryOf } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { entryAt } from '../../fold/read-view.ts'
import { withShownThread } from '../routes/existing-thread.ts'
import { toResult, type Asked } from './asked.ts'
import { toCallResult } from './content.ts'
import type { Fields } from './json-rpc.ts'
import { showsThread } from './tools.ts'

/** Of a run that has ended. The same at every call, because it is made of the run alone. */
export async function readCallResult(
  { context, client }: Pick<Asked, 'context' | 'client'>,
  run: string,
): Promise<Fields> {
  const { store } = context.runtime
  const view = await readView(store, run)
  const start = (await entryAt(store.log, run, 1)) as EntryOf<'run-start'> | undefined
  if (view === undefined || start === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
  const pipeline = readStored(start.pipeline)
  const result = toCallResult(withShownThread(context, view), {
    era: client.era,
    hasOutput: pipeline?.output !== undefined,
    showsThread: pipeline !== undefined && showsThread(pipeline),
  })
  return result as unknown as Fields
}

/** For the model: no run was started. */
export function faultResult({ client }: Pick<Asked, 'client'>, text: string): Fields {
  return toResult(client, { content: [{ type: 'text', text }], isError: true })
}
