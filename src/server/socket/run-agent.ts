/** `run_agent`: starts a run, or goes on with the one that waits for what the request brings, and follows it. */
import { compact } from '../../part/compact.ts'
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import { continueOrStart } from '../../runtime/continue.ts'
import { listedAgents } from '../../runtime/listed.ts'
import { unknownAgent } from '../../runtime/runtime-errors.ts'
import type { Agent, AgentSource } from '../../runtime/runtime.ts'
import { listNames } from '../../pipeline/nearest.ts'
import { toAgUiTurn } from '../ag-ui/ag-ui-turn.ts'
import { readRunInput, type AgUiRequest } from '../ag-ui/run-input.ts'
import { chatPolicy } from '../routes/chat-request.ts'
import type { Data, Reply } from './message.ts'
import { mostRuns, openPlace, type Session } from './session.ts'
import type { SessionContext } from './session-context.ts'

export async function runAgent(context: SessionContext, session: Session, data: Data): Promise<Reply> {
  const { runtime } = context
  const agent = agentOf(runtime.agents, data)
  const asked = readRunInput(data)
  const { runId: label, old } = asked
  if (session.active >= mostRuns) {
    const cure = 'Wait until one ends, or use another connection.'
    throw new MillraceError('too-many-runs', `This socket follows ${mostRuns} runs. ${cure}`)
  }
  const begun = begin(context, session, agent, asked)
  const id = begun.then(({ run }) => run.id)
  id.catch(() => undefined)
  session.starting.set(label, id)
  try {
    const { run, how, from, warnings, messages, place } = await begun
    const { id: runId, threadId } = run
    const said = { runId: label, threadId, millraceRunId: runId }
    // Sent twice, it has its stream already.
    if (how === 'joined' && session.followed.get(runId)?.isOver === false) {
      place?.leave()
      return { said }
    }
    const policy = chatPolicy(runtime, agent.id)
    const after = { seq: how === 'joined' ? 0 : Math.max(0, from - 1) }
    const answered = new Set(asked.results.map(({ toolCallId }) => toolCallId))
    const options = { old, warnings, ...(how === 'started' && compact({ messages })) }
    const { begin: send } = await session.follow({
      runId,
      label,
      threadId,
      after,
      isNew: how !== 'joined',
      answered,
      options,
      policy,
      place,
    })
    return { said, begin: send }
  } finally {
    if (session.starting.get(label) === id) session.starting.delete(label)
  }
}

async function begin({ runtime, admission }: SessionContext, session: Session, agent: Agent, asked: AgUiRequest) {
  const limited = await admission?.start(session.address)
  if (limited !== undefined) throw limited
  const place = await openPlace(admission, session.address)
  try {
    const { turn, ...shown } = await toAgUiTurn(runtime, agent, asked, { history: 'server' })
    return { ...(await continueOrStart(runtime, turn)), ...shown, place }
  } catch (error) {
    place?.leave()
    throw error
  }
}

/** The agent that `forwardedProps.agent` names, or the only one. */
function agentOf(agents: AgentSource, data: Data): Agent {
  const props = ownValue(data, 'forwardedProps')
  const named = typeof props === 'object' && props !== null ? ownValue(props as Data, 'agent') : undefined
  if (named === undefined || named === null) {
    const listed = listedAgents(agents)
    if (listed.length === 1) return listed[0]!
    const known = listNames(listed.map(({ id }) => id))
    throw new MillraceError('bad-input', `forwardedProps.agent is missing. Known agents: ${known}.`)
  }
  if (typeof named !== 'string') throw new MillraceError('bad-input', 'forwardedProps.agent must be a string.')
  const agent = agents.get(named)
  if (agent === undefined) throw unknownAgent(named, agents)
  return agent
}
