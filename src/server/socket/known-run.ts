/**
 * `abort_run` and `watch_run`. A run is named by our id, whichever client started it: who is connected may read and stop all runs, as
 * over HTTP. Ids that clients make need not be unique, so they name only runs of the same socket.
 */
import { checkCursor, readKept } from '../../fold/read-view.ts'
import { ownValue } from '../../part/own-value.ts'
import { unknownRun } from '../../runtime/runtime-errors.ts'
import { chatPolicy } from '../routes/chat-request.ts'
import { bad, readPosition, requiredText, type Data, type Reply } from './message.ts'
import { openPlace, type Session } from './session.ts'
import type { SessionContext } from './session-context.ts'

/** Protocols whose runs are for a client that reads them. */
const readProtocols: ReadonlySet<string> = new Set(['ag-ui', 'ui', 'text'])

export async function abortRun({ runtime }: SessionContext, session: Session, data: Data): Promise<Reply> {
  const name = requiredText(data, 'runId')
  const runId = await idOf(session, name)
  await runtime.stop(runId, 'Stopped by the user.')
  return { said: { runId: name } }
}

export async function watchRun({ runtime, admission }: SessionContext, session: Session, data: Data): Promise<Reply> {
  const name = requiredText(data, 'runId')
  const after = readPosition(data)
  const runId = await idOf(session, name)
  const row = await runtime.store.runs.get(runId)
  if (row === undefined) throw unknownRun(name)
  if (after.seq > row.lastSeq) throw bad('after', `at most ${row.lastSeq}, the last entry of run ${name}`)
  await checkCursor(runtime.store.log, row.id, after.seq)
  const { threadId, agent, protocol } = row
  // The latest, as the events after it name it.
  const label = (await readKept(runtime.store, runId))?.labels?.['runId'] ?? runId
  const { begin } = await session.follow({
    runId,
    label,
    threadId,
    after,
    isNew: false,
    options: { old: ownValue(data, 'protocolVersion') === undefined },
    policy: readProtocols.has(protocol) ? chatPolicy(runtime, agent) : 'detach',
    place: await openPlace(admission, session.address),
  })
  return { said: { runId: label, threadId, millraceRunId: runId }, begin }
}

/** Our id of the run that a client names. The latest one counts, if it has given several the same id. */
async function idOf(session: Session, name: string): Promise<string> {
  const starting = await session.starting.get(name)?.catch(() => undefined)
  const own = [...session.followed.values()].findLast(({ label }) => label === name)
  return starting ?? own?.runId ?? name
}
