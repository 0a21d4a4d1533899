/** Errors of the runtime, each with its HTTP status. */
import { isPattern } from './agent-names.ts'
import { MillraceError, toErrorValue, type ErrorValue } from '../part/error.ts'
import type { RequestPart } from '../part/request-part.ts'
import { didYouMean, listNames } from '../pipeline/nearest.ts'
import type { AgentSource, Agent } from './runtime.ts'

export function closingError(): MillraceError {
  return new MillraceError('closing', 'The server is shutting down. Try again in a moment.', {
    status: 503,
    retryAfter: 1,
  })
}

export function unknownRun(run: string): MillraceError {
  return new MillraceError('unknown-run', `There is no run ${run}.`, { status: 404 })
}

export function runExists(run: string): MillraceError {
  const cure = 'Omit the id to get a new one.'
  return new MillraceError('run-exists', `Run ${run} already exists. ${cure}`, { status: 409 })
}

export function unknownRequest(run: string, requestId: string): MillraceError {
  return new MillraceError('unknown-request', `Run ${run} has no request ${requestId}.`, { status: 404 })
}

export function wrongAnswer({ requestId, kind }: RequestPart): MillraceError {
  const wanted = {
    approval: 'an approval (approved: true or false)',
    tool: 'the result of a tool (output)',
    input: 'a value (value, declined: true, or cancelled: true)',
  }[kind]
  return new MillraceError('bad-input', `Request ${requestId} must be answered with ${wanted}.`, {
    status: 400,
  })
}

/** The caller's roles are none of those that the request names. */
export function roleNeeded({ requestId, roles = [] }: RequestPart): MillraceError {
  const words = roles.length === 0 ? 'admin' : roles.join(' or ')
  return new MillraceError(
    'forbidden',
    `Request ${requestId} can only be answered by somebody with the role ${words}.`,
    {
      status: 403,
    },
  )
}

export function unknownAgent(id: string, agents: AgentSource): MillraceError {
  const listed = listedAgents(agents)
  const known = listed
    .flatMap((agent) => [agent.id, ...(agent.pipeline.metadata.aliases ?? [])])
    .filter((name) => !isPattern(name))
  const list = listed.map((agent) => agent.id)
  const message = `There is no agent "${id.slice(0, 200)}"${didYouMean(id, known)}. Known agents: ${listNames(list)}.`
  return new MillraceError('unknown-agent', message, { status: 404 })
}

/** The error for readers of a run whose log has no end yet. */
export function lostError(error: unknown): ErrorValue {
  const { code } = toErrorValue(error, 'store-failed')
  // Details of a broken disk or database belong in the server's log, not in a client's response.
  return { code, message: 'The run could not be recorded.' }
}

/** The agents for lists: all without `metadata.hidden`. `AgentSource.get` also finds hidden ones. */
export function listedAgents(agents: AgentSource): Agent[] {
  return agents.list().filter(({ pipeline }) => pipeline.metadata.hidden !== true)
}
