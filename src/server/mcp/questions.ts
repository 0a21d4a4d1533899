/** The open requests of a run that a client can answer, by the keys under which it is asked; and its replies to them. */
import type { EntryOf } from '../../part/entry.ts'
import type { Reply } from '../../part/request-part.ts'
import type { KeptRun } from '../../fold/kept-run.ts'
import type { Asked } from './asked.ts'
import {
  elicitationKey,
  elicitationModes,
  fromElicitation,
  toElicitation,
  type Elicitation,
  type ElicitationModes,
} from './elicitation.ts'
import { isObject } from './json-rpc.ts'
import { ownValue } from '../../part/own-value.ts'
import type { Notes } from './notes.ts'

export interface Question {
  key: string
  request: EntryOf<'request'>
  elicitation: Elicitation
  /** How often content for it did not fit. */
  misfits: number
}

/** What an elicitation of a legacy version may be. */
export function modesOf({ client }: Pick<Asked, 'client'>): ElicitationModes {
  const modes = elicitationModes(client.capabilities)
  return client.era === 'legacy' && client.version < '2025-11-25' ? { ...modes, url: false } : modes
}

/** In the order in which they were opened. */
export async function questionsOf(
  asked: Pick<Asked, 'context' | 'mcp' | 'client'>,
  kept: KeptRun,
  notes: Notes,
): Promise<Question[]> {
  const { context, mcp } = asked
  const { runtime } = context
  const modes = modesOf(asked)
  const open = kept.requests.filter(({ requestId }) => !notes.left.has(requestId))
  if (open.length === 0 || !(modes.form || modes.url)) return []
  const words = await mcp.words.of(runtime.store.log, { id: kept.runId, lastSeq: kept.lastSeq })
  return open.flatMap((request): Question[] => {
    const misfits = notes.misfits.get(request.requestId) ?? 0
    const elicitation = toElicitation(request, {
      modes,
      runId: kept.runId,
      agents: words.agentsAt(request.step),
      refused: misfits,
      roles: runtime.roles,
      publicUrl: mcp.options.publicUrl,
      redact: runtime.redact,
    })
    return elicitation === undefined
      ? []
      : [{ key: elicitationKey(request, kept.runId, misfits), request, elicitation, misfits }]
  })
}

/** As MCP has them in `inputRequests`. */
export function toInputRequests(questions: readonly Question[]): Record<string, object> {
  return Object.fromEntries(
    questions.map(({ key, elicitation }) => [key, { method: 'elicitation/create', params: elicitation }]),
  )
}

export interface Answers {
  replies: Map<string, Reply>
  /** Requests that the client has cancelled, or that a person answers on our page. */
  left: { requestId: string; why: 'cancelled' | 'on-page' }[]
  misfits: Question[]
}

/** Keys that are unknown, stale or answered are ignored. */
export function readAnswers(questions: readonly Question[], given: unknown): Answers {
  const answers: Answers = { replies: new Map(), left: [], misfits: [] }
  if (!isObject(given)) return answers
  for (const question of questions) {
    const { key, request, elicitation } = question
    if (!Object.hasOwn(given, key)) continue
    const outcome = fromElicitation(request, elicitation.mode, ownValue(given, key))
    if (outcome.kind === 'reply') answers.replies.set(request.requestId, outcome.reply)
    else if (outcome.kind === 'open') answers.left.push({ requestId: request.requestId, why: outcome.why })
    else answers.misfits.push(question)
  }
  return answers
}
