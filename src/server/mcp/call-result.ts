/** The result of a call: that of its run, or why there is none. */
import { entryAt, foldLog, readView } from '../../fold/read-view.ts'
import type { RunView } from '../../fold/run-view.ts'
import type { Pipeline } from '../../pipeline/pipeline.ts'
import { readStored } from '../../engine/stored-pipeline.ts'
import type { EntryOf } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded } from '../../part/log.ts'
import { closingError } from '../../runtime/runtime-errors.ts'
import { withShownThread } from '../routes/existing-thread.ts'
import { toResult, type Asked } from './asked.ts'
import { toCallResult } from './content.ts'
import type { Fields } from './json-rpc.ts'
import { showsThread } from './tools.ts'

/** Of a run that has ended. The same at every call, because it is made of the run alone. */
export async function readCallResult(asked: Asking, run: string): Promise<Fields> {
  const { store } = asked.context.runtime
  const view = await readView(store, run)
  const start = (await entryAt(store.log, run, 1)) as EntryOf<'run-start'> | undefined
  if (view === undefined || start === undefined) throw new MillraceError('unknown-run', `There is no run ${run}.`)
  // Its log ended for this reader because the server shuts down: the run goes on elsewhere, or later.
  if (!hasEnded(view.status)) throw closingError()
  return resultOf(asked, view, readStored(start.pipeline))
}

/** Of a run whose answer is complete and which goes on with steps behind it. Undefined if its end decides, because that has the output. */
export async function readAnswer(asked: Asking, run: string, pipeline: Pipeline): Promise<Fields | undefined> {
  if (pipeline.after.length === 0 || pipeline.output !== undefined) return undefined
  const fold = await foldLog(asked.context.runtime.store.log.read(run))
  const view = fold?.view()
  if (view === undefined || view.text === '') return undefined
  return resultOf(asked, { ...view, status: 'completed' }, pipeline)
}

type Asking = Pick<Asked, 'context' | 'client'>

function resultOf({ context, client }: Asking, view: RunView, pipeline: Pipeline | undefined): Fields {
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
