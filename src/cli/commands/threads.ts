/** `millrace threads`: the list of conversations, and one of them on one page. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import { threadStatuses, type ThreadQuery, type ThreadRow, type ThreadStatus } from '../../part/thread.ts'
import type { ShownThread } from '../../server/show-thread.ts'
import { openConnection, type ConnectionFlags } from '../connection.ts'
import { formatCost, formatDuration, formatTime, formatMessage, shortened } from '../terminal/format.ts'
import { forStream, printable, paint, paintStatus } from '../terminal/output.ts'
import { formatTable, cut } from '../terminal/table.ts'
import { addConnectionOptions, choice, examples } from './options.ts'

interface ThreadsFlags extends ConnectionFlags {
  status?: ThreadStatus
  agent?: string
  search?: string
  limit: string
  full?: boolean
  json?: boolean
}

export function addThreadsCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('threads')
    .summary('List conversations, or show one')
    .description('List conversations, newest first. With the id of one: its facts, runs and messages.')
    .argument('[thread]', 'Id of a conversation')
    .addOption(choice('--status <status>', 'Only conversations with this status', threadStatuses))
    .option('--agent <id>', 'Only conversations in which this agent has run')
    .option('--search <words>', 'Only conversations with a text that has all these words')
    .addOption(new Option('--limit <n>', 'Maximum number of conversations, 1 to 1000').default('20', '20'))
    .option('--full', 'With an id: all messages, and do not shorten them')
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      examples(
        'millrace threads',
        'millrace threads --status waiting',
        'millrace threads --search "refund invoice"',
        'millrace threads thread_1a2b3c --full',
      ),
    )
    .action((thread: string | undefined, flags: ThreadsFlags) => showThreads(context, thread, flags))
  addConnectionOptions(command)
}

/** Messages that are shown without `--full`. */
const shownMessages = 20

async function showThreads(
  context: CommandContext,
  id: string | undefined,
  { status, agent, search, limit, full = false, json = false, ...where }: ThreadsFlags,
): Promise<void> {
  const count = Number(limit)
  if (!/^\d+$/u.test(limit) || count < 1 || count > 1000)
    throw new MillraceError('usage', `--limit must be a number from 1 to 1000, not "${limit}".`)
  if (search?.trim() === '') throw new MillraceError('usage', 'Which words? Pass them with --search "…".')
  const connection = await openConnection(context, where)
  try {
    if (id !== undefined) {
      const thread = await connection.thread(id, { messages: full ? undefined : shownMessages }).catch(orUnknown)
      write(context, json ? JSON.stringify(thread, null, 2) : page(context, thread, full))
      return
    }
    // One more than shown, to know whether there are more.
    const query: ThreadQuery = { limit: Math.min(1000, count + 1), ...omitUndefined({ status, agent, q: search }) }
    const found = await connection.threads(query)
    const rows = found.slice(0, count)
    write(context, json ? JSON.stringify(rows, null, 2) : table(context, rows))
    if (!json && rows.length === 0)
      context.stderr.write(
        `no ${(status ?? agent ?? search) ? 'matching ' : ''}conversations${(status ?? agent ?? search) ? '' : ' yet'}\n`,
      )
    if (found.length > count) context.stderr.write(`(more conversations: use --limit ${Math.min(1000, count * 5)})\n`)
  } finally {
    await connection.close()
  }
}

function orUnknown(error: unknown): never {
  if (!(error instanceof MillraceError) || error.code !== 'unknown-thread') throw error
  throw new MillraceError('usage', `${error.message} List threads with: millrace threads`)
}

function write(context: CommandContext, text: string): void {
  context.stdout.write(`${forStream(text, context.stdout)}\n`)
}

const head = ['THREAD', 'AGENTS', 'STATUS', 'LAST', 'RUNS', 'TOKENS', 'COST', 'TITLE']

function table(context: CommandContext, rows: readonly ThreadRow[]): string {
  const cells = rows.map((row) => [
    row.id,
    row.agents.join(','),
    row.status,
    formatTime(row.updatedAt),
    String(row.runCount),
    String(row.usage.totalTokens ?? ''),
    row.cost === undefined ? '' : formatCost(row.cost),
    cut((row.match?.excerpt ?? row.title ?? '').replaceAll(/\s+/gu, ' '), 60),
  ])
  return formatTable(head, cells, {
    style: (cell, column, row) => {
      if (row < 0) return paint(context, 'bold', cell)
      return column === 2 ? paintStatus(context, cell) : cell
    },
  })
}

function page(context: CommandContext, thread: ShownThread, full: boolean): string {
  const { id, status, runs, messages, messagesBefore } = thread
  const listed = runs.map((run) => [run.id, run.agent, run.status, formatTime(run.startedAt), cut(run.title ?? '', 60)])
  const said = messages.flatMap((message) => formatMessage(message, full ? Infinity : shortened))
  const sections = [
    [`${paint(context, 'bold', printable(id))}  ${paintStatus(context, status)}`, ...facts(thread)].join('\n'),
    `${paint(context, 'bold', 'Runs')}\n${formatTable(['RUN', 'AGENT', 'STATUS', 'STARTED', 'TITLE'], listed)}`,
    `${paint(context, 'bold', 'Messages')}\n${printable(said.join('\n'))}`,
  ]
  return sections.join('\n\n') + (messagesBefore === undefined ? '' : '\n\n(earlier messages: use --full)')
}

function facts(thread: ThreadRow): string[] {
  const { title, agents, models, tools, startedAt, updatedAt, runCount, messageCount, errorCount } = thread
  const { usage, cost, firstTokenMs, toolCallCount } = thread
  const rows: [string, string | undefined][] = [
    ['title', title],
    ['agents', agents.join(', ')],
    ['models', models.join(', ')],
    ['tools', tools.length === 0 ? undefined : `${tools.join(', ')} (${toolCallCount} calls)`],
    ['started', `${formatTime(startedAt)} UTC`],
    ['last', `${formatTime(updatedAt)} UTC`],
    ['runs', `${runCount}, ${errorCount} with errors`],
    ['messages', messageCount === undefined ? undefined : String(messageCount)],
    ['tokens', `${usage.inputTokens ?? '?'} in, ${usage.outputTokens ?? '?'} out`],
    ['cost', cost === undefined ? 'unknown' : formatCost(cost)],
    [
      'first token',
      firstTokenMs && `${formatDuration(firstTokenMs.last)} (average ${formatDuration(firstTokenMs.average)})`,
    ],
  ]
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(11)}  ${printable(value)}`]))
}
