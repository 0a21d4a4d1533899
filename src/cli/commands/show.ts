/** `millrace show`: everything about one run, on one page. */
import type { CommandContext } from '../context.ts'
import { wholeMessage } from '../../part/error.ts'
import type { RunView } from '../../fold/run-view.ts'
import type { Message } from '../../part/message.ts'
import { openConnection, formatFlags, type ConnectionFlags, findRun } from '../connection.ts'
import { formatCost, formatDuration, formatTime } from '../amounts.ts'
import { formatUsage } from '../usage-table.ts'
import { answerLine, questionOf } from '../answer-line.ts'
import { formatMessage, shortened } from '../message-lines.ts'
import { forStream, printable } from '../printable.ts'
import { formatOutputs, readOutputs, type StepOutput } from '../step-outputs.ts'
import { formatSteps } from '../step-tree.ts'
import { orphaned, paint, paintStatus } from '../style.ts'

export interface ShowFlags extends ConnectionFlags {
  json?: boolean
  full?: boolean
}

export async function showCommand(
  context: CommandContext,
  text: string,
  { json, full = false, ...where }: ShowFlags,
): Promise<void> {
  const connection = await openConnection(context, where)
  try {
    const run = await findRun(connection, text)
    const view = await connection.view(run.id)
    const isOrphan = (await connection.orphanOutcome({ ...run, status: view.status })) !== undefined
    const { runId, ...rest } = view
    const outputs = json && !full ? [] : await readOutputs(connection.read(run.id, 0, false))
    const data = { id: runId, ...rest, ...(isOrphan && { orphaned: true }), ...(full && { outputs }) }
    const shown = json
      ? forStream(JSON.stringify(data, null, 2), context.stdout)
      : page(context, view, {
          foreign: run.foreign,
          isOrphan,
          where: formatFlags(where),
          outputs,
          longest: full ? Infinity : shortened,
        })
    context.stdout.write(`${shown}\n`)
  } finally {
    await connection.close()
  }
}

interface PageOptions {
  foreign: number | undefined
  isOrphan: boolean
  where: string
  outputs: StepOutput[]
  longest: number
}

function page(
  context: CommandContext,
  view: RunView,
  { foreign, isOrphan, where, outputs, longest }: PageOptions,
): string {
  const { runId, agent, status, error, output, requests } = view
  const shownStatus = paintStatus(context, isOrphan ? orphaned : status)
  const sections = [
    [`${paint(context, 'bold', printable(runId))}  ${printable(agent)}  ${shownStatus}`, ...facts(view, foreign)].join(
      '\n',
    ),
    section(context, 'Steps', formatSteps(context, view)),
    section(
      context,
      'Models',
      formatUsage(
        'MODEL',
        view.usageByModel.map(({ model, ...used }) => [model, used]),
      ),
    ),
    section(context, 'Step outputs', formatOutputs(context, outputs, longest)),
    section(
      context,
      'Messages',
      printable([...asked(view), ...view.messages].flatMap((message) => formatMessage(message, longest)).join('\n')),
    ),
    // Not repeated if it is the answer.
    section(
      context,
      'Output',
      output === undefined || output === view.text ? '' : printable(JSON.stringify(output, null, 2)),
    ),
    section(context, 'Open requests', printable(requests.map((request) => waitsFor(request, view, where)).join('\n'))),
    section(context, 'Error', error === undefined ? '' : printable(`${error.code}: ${wholeMessage(error)}`)),
  ]
  return sections.filter((text) => text !== '').join('\n\n')
}

function facts(view: RunView, foreign: number | undefined): string[] {
  const { startedAt, endedAt, threadId, parentRunId, protocol, usage, lastSeq, summary } = view
  const { inputTokens, outputTokens, source } = usage
  const rows: [string, string | undefined][] = [
    [
      'started',
      `${formatTime(startedAt)} UTC${endedAt === undefined ? '' : `, took ${formatDuration(endedAt - startedAt)}`}`,
    ],
    ['thread', threadId],
    ['parent', parentRunId],
    ['protocol', protocol],
    ['foreign', foreign === undefined ? undefined : `its first ${foreign} entries were recorded elsewhere`],
    ['tokens', `${inputTokens ?? '?'} in, ${outputTokens ?? '?'} out (${source})`],
    ['cost', costOf(view)],
    [
      'log',
      [
        plural(lastSeq, 'entry', 'entries'),
        plural(summary.toolCalls, 'tool call'),
        plural(summary.errors, 'error'),
      ].join(', '),
    ],
  ]
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(10)}  ${printable(value)}`]))
}

function costOf({ cost, knownCost = 0, steps, endedAt }: RunView): string {
  const isOver = endedAt !== undefined
  if (cost !== undefined) return `${formatCost(cost)}${isOver ? '' : ' so far'}`
  const calls = steps.filter(({ kind }) => kind === 'model-call')
  if (calls.length === 0) return isOver ? 'none: no model was called' : 'none so far: no model was called'
  if (calls.every(({ duration }) => duration === undefined)) return 'known when the model call ends'
  const others = knownCost === 0 ? '' : `; the other calls cost ${formatCost(knownCost)}`
  return `unknown: the config has no price for a model that was called${others}`
}

/** The messages of the request. Clients may send anything, so the shape is checked. */
function asked({ input }: RunView): Message[] {
  const { messages, ...rest } = input
  const list = Array.isArray(messages) ? (messages as Message[]) : []
  const known = list.filter((each) => typeof each?.content === 'string' || Array.isArray(each?.content))
  return Object.keys(rest).length === 0 ? known : [{ role: 'user', content: JSON.stringify(rest) }, ...known]
}

function waitsFor(request: RunView['requests'][number], { runId, requests }: RunView, where: string): string {
  const about =
    request.kind === 'input'
      ? `waits for a value: ${questionOf(request)}`
      : `${request.toolName}  waits for ${request.kind === 'approval' ? 'approval' : 'the result'} of ${JSON.stringify(request.input)}`
  return [
    `${about}, until ${formatTime(request.deadline)} UTC`,
    `  ${answerLine(runId, request, { where, isOneOfMany: requests.length > 1 })}`,
  ].join('\n')
}

function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

function section(context: CommandContext, title: string, text: string): string {
  return text === '' ? '' : `${paint(context, 'bold', title)}\n${text}`
}
