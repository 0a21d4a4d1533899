/** `tool_result`: what a client's tool returned. It answers a call of a run that this socket follows, never one of others. */
import { MillraceError } from '../../part/error.ts'
import { optionalText } from '../http/body.ts'
import { toCallId } from '../../wire/ag-ui/ag-ui-call-names.ts'
import { toToolAnswer } from '../../wire/ag-ui/ag-ui-answers.ts'
import { notAsked } from './client-calls.ts'
import type { FollowedRun } from './followed-run.ts'
import { requiredText, type Data, type Reply } from './message.ts'
import type { Session } from './session.ts'
import type { SessionContext } from './session-context.ts'

export async function answerCall(context: SessionContext, session: Session, data: Data): Promise<Reply> {
  const { runtime } = context
  const name = requiredText(data, 'toolCallId')
  const toolCallId = toCallId(name)
  const given = toToolAnswer(data, 'data')
  const run = await runOf(session, toolCallId, optionalText(data, 'runId'))
  const requestId = await run.calls.requestOf(toolCallId)
  // Redacted like the stored answer, so that the same answer compares as equal.
  const answer = runtime.redact(given)
  const { duplicate, answer: winner } = await runtime.answer(run.runId, requestId, answer, { protocol: 'socket.io' })
  if ('closed' in winner) throw conflict(toolCallId, `was closed: ${winner.closed}`)
  if (duplicate && JSON.stringify(winner.answer) !== JSON.stringify(answer))
    throw conflict(toolCallId, 'already has a different result')
  return { said: { toolCallId: name, duplicate } }
}

/** The run whose call this is. Providers repeat ids, so calls of several runs may have the same one. */
async function runOf(session: Session, toolCallId: string, label: string | undefined): Promise<FollowedRun> {
  await session.caughtUp()
  const runs = [...session.followed.values()]
  const named = label === undefined ? runs : runs.filter((run) => run.label === label || run.runId === label)
  const having = named.filter(({ calls }) => calls.has(toolCallId))
  const open = having.filter(({ calls }) => calls.isOpen(toolCallId))
  const living = having.filter(({ isOver }) => !isOver)
  const found = [open, living, having].find(({ length }) => length > 0) ?? []
  if (found.length > 1) {
    const cure = 'Say with runId which of them this is.'
    throw new MillraceError('ambiguous-call', `${found.length} runs have a call "${toolCallId}". ${cure}`)
  }
  const [run] = found
  if (run === undefined) throw notAsked(toolCallId)
  return run
}

function conflict(toolCallId: string, why: string): MillraceError {
  return new MillraceError('answer-conflict', `The call "${toolCallId}" ${why}.`, { status: 409 })
}
