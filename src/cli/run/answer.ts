/** `millrace answer`: answers the open requests of a run, then follows the run. */
import { text } from 'node:stream/consumers'
import { leave, type CommandContext } from '../context.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ClientAnswer, ClientConsent } from '../../client/client.ts'
import type { EntryOf } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import type { RunView } from '../../fold/run-view.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { isHeld } from '../../server/data-lock.ts'
import { textWire } from '../../wire/text/text.ts'
import { openConnection, findRun, formatFlags, sharedStoreUrl } from '../connection.ts'
import { answerLines, shortRequestId, createAsk, jsonOrText, formatRequests } from './requests.ts'
import { openAgents } from '../connection/agents.ts'
import { createConsent } from './consent.ts'
import { forStream, printable } from '../terminal/output.ts'
import { reportRun, followStarted } from './follow.ts'
import type { AnswerFlags } from '../commands/answer.ts'

type Request = EntryOf<'request'>

export async function answerRun(
  context: CommandContext,
  run: string,
  given: string | undefined,
  flags: AnswerFlags,
): Promise<void> {
  const { view, url } = await readRun(context, run, flags)
  const { runId, requests, lastSeq } = view
  const where = formatFlags(flags)
  const ask = createAsk(context, { leaves: true, url })
  if (flags.json || flags.list || (given === undefined && !requests.some(ask.canAnswer))) {
    const { stdout } = context
    if (flags.json) stdout.write(forStream(`${JSON.stringify(requests, null, 2)}\n`, stdout))
    else if (requests.length > 0) stdout.write(`${formatRequests(runId, requests)}\n`)
    else context.stderr.write(`${runId} has no open requests (${view.status})\n`)
    const lines = answerLines(runId, requests, where)
    if (!flags.json && lines.length > 0)
      context.stderr.write(`${printable(['', 'Answer with:', ...lines].join('\n'))}\n`)
    return
  }
  const request = given === undefined ? undefined : pickRequest(view, flags.request)
  const words = given === '-' ? (await text(context.stdin)).trim() : given
  if (words === '') throw new MillraceError('usage', 'The answer is empty.')
  const answer = request && toAnswer(request, words!, flags)
  const shared = await sharedStoreUrl(context, flags)
  if (url === undefined && shared === undefined) checkFree(context, view, flags.data)

  const connection = await openAgents(context, { ...flags, isAnyServer: true, isAnswer: true })
  if (connection.url === undefined && connection.isPosted !== true) {
    const where = shared === undefined ? `is running on ${flags.data}` : 'shares the store'
    context.stderr.write(`no server ${where}: ${runId} continues in this process\n`)
  }
  const { agent } = flags
  const withConsent = createConsent(context, flags, { run: runId, agent })
  // The agent is only needed with the first answer.
  let consent: ClientConsent = omitUndefined({ agentId: agent })
  const sendAnswer = async (run: string, requestId: string, given: ClientAnswer) => {
    await withConsent((more) => connection.client.answer(run, requestId, given, { ...consent, ...more }))
    consent = {}
  }
  const options = { wire: textWire, ask, after: lastSeq, asksOpen: given === undefined, sendAnswer }
  let code: number
  try {
    const result = await followStarted(context, connection, options, async () => {
      if (request !== undefined && answer !== undefined) await sendAnswer(runId, request.requestId, answer)
      return runId
    })
    code = reportRun(context, { ...result, where: connection.flags })
  } finally {
    await connection.close()
  }
  await leave(context, code)
}

async function readRun(
  context: CommandContext,
  text: string,
  flags: AnswerFlags,
): Promise<{ view: RunView; url: string | undefined }> {
  const connection = await openConnection(context, flags)
  try {
    const { id } = await findRun(connection, text)
    return { view: await connection.view(id), url: connection.url }
  } finally {
    await connection.close()
  }
}

/** Throws if another `millrace` process may own the run: it would not notice an answer given here. */
function checkFree(context: CommandContext, { runId, status, protocol }: RunView, data: string): void {
  if (status !== 'running' && !(protocol === 'cli' && isHeld(context.path(data), 'anyone'))) return
  throw new MillraceError('usage', `${runId} may belong to another millrace command that is running. Answer it there.`)
}

function pickRequest({ runId, requests, status }: RunView, wanted: string | undefined): Request {
  if (requests.length === 0) throw new MillraceError('usage', `${runId} has no open requests (${status}).`)
  if (wanted === undefined && requests.length === 1) return requests[0]!
  const named = requests.map((request) => ({ request, id: shortRequestId(runId, request) }))
  const list = named.map(({ id, request }) => `${id} (${request.toolName ?? request.kind})`).join(', ')
  if (wanted === undefined) {
    throw new MillraceError('usage', `${runId} has several open requests. Choose one with --request: ${list}.`)
  }
  const found = named.filter(({ id, request }) => [id, request.requestId, request.toolName].includes(wanted))
  if (found.length === 1) return found[0]!.request
  const words = named.flatMap(({ id, request }) => [id, request.toolName ?? []].flat())
  const problem =
    found.length > 1 ? `several open requests for ${wanted}` : `no open request ${wanted}${didYouMean(wanted, words)}`
  throw new MillraceError('usage', `${runId} has ${problem}. Open: ${list}.`)
}

const yes = ['approve', 'yes', 'y']
const no = ['deny', 'no', 'n']

function toAnswer(
  { kind, toolName = 'the run' }: Request,
  given: string,
  { reason, error }: AnswerFlags,
): ClientAnswer {
  if (kind === 'tool') {
    if (reason !== undefined)
      throw new MillraceError('usage', `--reason is only for deny, but ${toolName} waits for its result.`)
    return { output: jsonOrText(given), ...(error ? { isError: true } : undefined) }
  }
  if (kind === 'input') {
    if (reason !== undefined || error)
      throw new MillraceError('usage', `--reason and --error are not for a value, which ${toolName} waits for.`)
    return { value: jsonOrText(given) }
  }
  if (error)
    throw new MillraceError('usage', `--error is only for the result of a tool, but ${toolName} waits for an approval.`)
  const word = given.toLowerCase()
  const approved = yes.includes(word)
  if (!approved && !no.includes(word)) {
    const meant = didYouMean(word, [...yes, ...no])
    throw new MillraceError(
      'usage',
      `${toolName} waits for an approval: answer approve or deny, not "${given}"${meant}.`,
    )
  }
  return omitUndefined({ approved, reason })
}
