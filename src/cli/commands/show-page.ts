/** `millrace show`: everything about one run, on one page. */
import type { CommandContext } from '../context.ts'
import { wholeMessage } from '../../part/error.ts'
import type { RunView, StepView } from '../../fold/run-view.ts'
import { summaryWords } from '../../fold/summary-words.ts'
import type { Message } from '../../part/message.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Actor } from '../../part/principal.ts'
import type { Reply } from '../../part/request-part.ts'
import { findRun, formatFlags, openConnection } from '../connection.ts'
import {
  formatCost,
  formatDuration,
  formatActor,
  formatTime,
  formatUsage,
  formatTokens,
  formatMessage,
  shortened,
} from '../terminal/format.ts'
import { messageLine } from '../run/message-line.ts'
import { answerLine, questionOf } from '../run/requests.ts'
import { forStream, printable, orphaned, paint, paintStatus } from '../terminal/output.ts'
import { parentPath, isUnder } from '../../part/path.ts'
import { cut, formatTable } from '../terminal/table.ts'
import type { Entry, EntryOf } from '../../part/entry.ts'
import { kindOf, type StepKind } from '../../part/step-kind.ts'
import { progressWords } from '../../fold/progress-words.ts'
import { createSkillsUsed } from '../../fold/skills-used.ts'
import { replyMessages } from '../../fold/reply-messages.ts'
import { createToolLoop, type ToolLoop } from '../../fold/tool-loop.ts'
import type { ShowFlags } from './show.ts'

export async function showRun(
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
    const { outputs, answers, said, skills, progress } =
      json && !full
        ? { outputs: [], answers: [], said: [], skills: [], progress: new Map<string, string>() }
        : await readLog(connection.read(run.id, 0, false))
    const data = { id: runId, ...rest, ...(isOrphan && { orphaned: true }), ...(full && { outputs, answers, skills }) }
    const shown = json
      ? forStream(JSON.stringify(data, null, 2), context.stdout)
      : page(context, view, {
          foreign: run.foreign,
          isOrphan,
          where: formatFlags(where),
          outputs,
          answers,
          said,
          skills,
          progress,
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
  answers: GivenAnswer[]
  said: BetweenSteps[]
  skills: string[]
  progress: ReadonlyMap<string, string>
  longest: number
}

function page(
  context: CommandContext,
  view: RunView,
  { foreign, isOrphan, where, outputs, answers, said, skills, progress, longest }: PageOptions,
): string {
  const { runId, agent, status, error, output, requests } = view
  const shownStatus = paintStatus(context, isOrphan ? orphaned : status)
  const sections = [
    [
      `${paint(context, 'bold', printable(runId))}  ${printable(agent)}  ${shownStatus}`,
      ...facts(view, foreign, skills),
    ].join('\n'),
    section(context, 'Steps', formatSteps(context, withMessages(view, said), progress)),
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
      printable(
        [...inputMessages(view), ...view.messages].flatMap((message) => formatMessage(message, longest)).join('\n'),
      ),
    ),
    // Not repeated if it is the answer.
    section(
      context,
      'Output',
      output === undefined || output === view.text ? '' : printable(JSON.stringify(output, null, 2)),
    ),
    section(context, 'Answers', formatAnswers(answers)),
    section(context, 'Open requests', printable(requests.map((request) => waitsFor(request, view, where)).join('\n'))),
    section(context, 'Error', error === undefined ? '' : printable(`${error.code}: ${wholeMessage(error)}`)),
  ]
  return sections.filter((text) => text !== '').join('\n\n')
}

function facts(view: RunView, foreign: number | undefined, skills: readonly string[]): string[] {
  const { startedAt, endedAt, user, threadId, parentRunId, protocol, usage, lastSeq, summary } = view
  const { inputTokens, outputTokens, source } = usage
  const rows: [string, string | undefined][] = [
    [
      'started',
      `${formatTime(startedAt)} UTC${endedAt === undefined ? '' : `, took ${formatDuration(endedAt - startedAt)}`}`,
    ],
    ['started by', user && formatActor(user)],
    ['thread', threadId],
    ['parent', parentRunId],
    ['protocol', protocol],
    ['foreign', foreign === undefined ? undefined : `its first ${foreign} entries were recorded elsewhere`],
    ['tokens', `${inputTokens ?? '?'} in, ${outputTokens ?? '?'} out (${source})`],
    ['cost', costOf(view)],
    ['skills', skills.length === 0 ? undefined : skills.join(', ')],
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
function inputMessages({ input }: RunView): Message[] {
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

/** The steps of a run as a tree, in the order in which they started. `progress`: what each says of itself while it goes on. */
export function formatSteps(
  context: CommandContext,
  { steps, status }: RunView,
  progress: ReadonlyMap<string, string> = new Map(),
): string {
  const paths = new Set(steps.map(({ path }) => path))
  // The parent of a step is another step; `main` and `after` are not steps. Nor is the run, whose path is its own parent's.
  const parentOf = (path: string) => (path !== '' && paths.has(parentPath(path)) ? parentPath(path) : undefined)
  const children = Map.groupBy(steps, ({ path }) => parentOf(path))
  const rows: string[][] = []

  function add(list: StepView[], indent: string, under: string | undefined): void {
    for (const [i, step] of list.entries()) {
      const isLast = i === list.length - 1
      // Top-level steps have no branch line.
      const [branch, rest] = under === undefined ? ['', ''] : isLast ? ['└─ ', '   '] : ['├─ ', '│  ']
      const name = under === undefined ? step.path.replace(/^main\//u, '') : step.path.slice(under.length + 1)
      const { stepType, toolName, duration, attempt, usage } = step
      rows.push([
        indent + branch + name,
        toolName === undefined ? stepType : `${stepType} ${toolName}`,
        duration === undefined ? '' : formatDuration(duration),
        formatTokens(usage),
        endOf(step, status, progress.get(step.path)) + (attempt > 1 ? ` (attempt ${attempt})` : ''),
      ])
      add(children.get(step.path) ?? [], indent + rest, step.path)
    }
  }
  add(children.get(undefined) ?? [], '', undefined)
  const head = ['STEP', 'TYPE', 'TOOK', 'TOKENS', 'END']
  return formatTable(head, rows, { style: (cell, column) => (column === 4 ? paintStatus(context, cell) : cell) })
}

function endOf(
  { duration, error, finishReason, answer }: StepView,
  status: RunView['status'],
  says: string | undefined,
): string {
  if (error !== undefined) return `${error.code}: ${wholeMessage(error)}`
  if (duration === undefined) {
    if (status !== 'running' && status !== 'suspended') return ''
    return says === undefined ? status : `${status}: ${cut(says, longestProgress)}`
  }
  return [finishReason, answer && 'answer'].filter(Boolean).join(', ')
}

/** Columns of what a step says of itself. */
const longestProgress = 60

/** Step outputs that clients do not see: the messages of their models, and their results. */
interface StepOutput {
  step: string
  /** Text and tool calls of the model. */
  messages?: Message[]
  /** The step's result. */
  result?: unknown
}

/** Steps whose output is that of the steps inside them. */
const containers: ReadonlySet<StepKind> = new Set(['parallel', 'container'])
const calls: ReadonlySet<StepKind> = new Set(['model-call', 'tool-call', 'client-tool', 'approval'])

/** A reply to a request of the run, and who gave it. */
interface GivenAnswer {
  requestId: string
  /** Absent if it was no tool call that asked. */
  toolName?: string
  /** `approved`, `denied`, `result`, `value` or `cancelled`. */
  answer: string
  by: Actor
  /** Epoch ms. */
  at: number
}

function formatAnswers(answers: readonly GivenAnswer[]): string {
  return answers
    .map(({ toolName = 'question', answer, by, at }) =>
      printable(`${toolName}  ${answer} by ${formatActor(by)}, ${formatTime(at)} UTC`),
    )
    .join('\n')
}

function wordOf(answer: Reply): string {
  if (answer.kind === 'approval') return answer.approved ? 'approved' : 'denied'
  if (answer.kind === 'tool') return 'result'
  return 'cancelled' in answer ? 'cancelled' : 'value'
}

interface LogParts {
  outputs: StepOutput[]
  /** Those of which the log says who gave them. */
  answers: GivenAnswer[]
  /** Messages that were sent into the run, and summaries. */
  said: BetweenSteps[]
  /** Those that models have read. */
  skills: string[]
  /** What a step says of itself, by its path. */
  progress: Map<string, string>
}

/** What stands between the steps. */
interface BetweenSteps {
  entry: EntryOf<'message' | 'summarized'>
  /** How many steps had started. */
  behind: number
}

/** The messages between the steps, with who sent each and how long it waited; and what older messages were told in fewer words. */
function withMessages(view: RunView, said: readonly BetweenSteps[]): RunView {
  if (said.length === 0) return view
  const steps = [...view.steps]
  for (const { entry, behind } of said.toReversed()) {
    const { step, timestamp: startedAt } = entry
    const path = `${step === '' ? 'main' : step}/${entry.type === 'message' ? entry.id : 'summarized'}`
    const words = entry.type === 'message' ? messageLine(entry) : `≡ ${summaryWords(entry)}`
    const how = { kind: 'custom', attempt: 1, startedAt, duration: 0, finishReason: '' } as const
    steps.splice(behind, 0, { path, stepType: words, ...how })
  }
  return { ...view, steps }
}

/** Leaves out steps without an output, and the answer itself. */
async function readLog(entries: AsyncIterable<Entry>): Promise<LogParts> {
  const answering: string[] = []
  const asked = new Map<string, string | undefined>()
  const answers: GivenAnswer[] = []
  const said: BetweenSteps[] = []
  const begun = new Set<string>()
  const used = createSkillsUsed()
  const progress = new Map<string, string>()
  const steps = new Map<string, { loop?: ToolLoop; result?: unknown }>()
  for await (const entry of entries) {
    const { step, type } = entry
    if (type === 'step-start') begun.add(step)
    if (type === 'message' || type === 'summarized') said.push({ entry, behind: begun.size })
    used.apply(entry)
    const words = progressWords(entry)
    if (words !== undefined) progress.set(step, words)
    if (type === 'request') asked.set(entry.requestId, entry.toolName)
    if (type === 'response' && entry.by !== undefined && entry.answer !== undefined) {
      const { requestId, by, answer, timestamp: at } = entry
      answers.push({ requestId, ...omitUndefined({ toolName: asked.get(requestId) }), answer: wordOf(answer), by, at })
    }
    if (type === 'step-start' && entry.answer) answering.push(step)
    if (answering.some((path) => isUnder(step, path))) continue
    if (type === 'step-start' && !calls.has(kindOf(entry)) && !containers.has(kindOf(entry))) {
      if (!steps.has(step)) steps.set(step, { loop: createToolLoop(step) })
    } else if (type === 'step-finish' && entry.result !== undefined) {
      const found = steps.get(step)
      if (found !== undefined) found.result = entry.result
    }
    for (const [path, { loop }] of steps) if (isUnder(step, path)) loop?.apply(entry)
  }
  const outputs = [...steps].flatMap(([step, { loop, result }]) => {
    const messages = loop === undefined ? [] : replyMessages(loop.list)
    if (messages.length === 0 && result === undefined) return []
    return [{ step, ...(messages.length > 0 && { messages }), ...(result !== undefined && { result }) }]
  })
  return { outputs, answers, said, skills: used.list(), progress }
}

/** `longest`: maximum characters of one text. */
function formatOutputs(context: CommandContext, outputs: readonly StepOutput[], longest: number): string {
  const blocks = outputs.map(({ step, messages = [], result }) => {
    const lines = messages.flatMap((message) => formatMessage(message, longest))
    if (result !== undefined) {
      const content = typeof result === 'string' ? result : JSON.stringify(result)
      lines.push(...formatMessage({ role: 'user', content }, longest, 'result'))
    }
    return [
      paint(context, 'dim', printable(step.replace(/^main\//u, ''))),
      ...lines.map((line) => `  ${printable(line)}`),
    ].join('\n')
  })
  return blocks.join('\n')
}
