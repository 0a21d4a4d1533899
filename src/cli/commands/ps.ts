/** `millrace ps`: lists runs. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { runSorts, runStatuses, type RunQuery, type RunRow, type RunSort, type RunStatus } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import {
  openConnection,
  sharedStoreUrl,
  type Connection,
  type ConnectionFlags,
  type OrphanOutcome,
} from '../connection.ts'
import { formatDuration, formatTime, formatTokens } from '../terminal/format.ts'
import { forStream, orphaned, paint, paintStatus } from '../terminal/output.ts'
import { columnWidths, formatTable, cut } from '../terminal/table.ts'
import { addConnectionOptions, choice, examples } from './options.ts'

interface PsFlags extends ConnectionFlags {
  status?: string
  agent?: string
  user?: string
  model?: string
  protocol?: string
  sort?: RunSort
  search?: string
  limit: string
  json?: boolean
}

export function addPsCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('ps')
    .summary('List runs')
    .description('List runs, newest first.')
    .addOption(choice('--status <status>', 'Only runs with this status', runStatuses))
    .option('--agent <id>', 'Only runs of this agent')
    .option('--user <id>', 'Only runs that this user started or forked; "" for those of no one')
    .option('--model <name>', 'Only runs that have called this model')
    .option('--protocol <name>', 'Only runs that were started over this protocol, such as ui, openai or page')
    .option(
      '-q, --search <words>',
      'Only runs with these words: in the title, or in what the user, the model and the tools said',
    )
    .addOption(new Option('--limit <n>', 'Maximum number of runs, 1 to 1000').default('20', '20'))
    .addOption(choice('--sort <value>', 'Sort the newest 10,000 that fit, the greatest first', runSorts))
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      examples(
        'millrace ps',
        'millrace ps --status suspended --agent assistant',
        'millrace ps --search "blue whale"',
        'millrace ps --model openai/gpt-5 --sort cost',
      ),
    )
    .action((flags: PsFlags) => listRuns(context, flags))
  addConnectionOptions(command)
}

async function listRuns(
  context: CommandContext,
  { status, agent, user, model, protocol, sort, search, limit, json, ...where }: PsFlags,
): Promise<void> {
  const count = Number(limit)
  if (!/^\d+$/u.test(limit) || count < 1 || count > 1000) {
    throw new MillraceError('usage', `--limit must be a number from 1 to 1000, not "${limit}".`)
  }
  const { stdout, stderr } = context
  const connection = await openConnection(context, where)
  const query: RunQuery = { limit: count, ...omitUndefined({ model, protocol, sort }) }
  if (status !== undefined) query.status = status as RunStatus
  if (agent !== undefined) query.agent = agent
  if (user !== undefined) query.owner = user
  if (search !== undefined) query.search = search
  const rows = await connection.list(query)
  const outcomes = await outcomesOf(connection, rows)
  const hasMore =
    rows.length === count && (await connection.list({ ...query, limit: 1, before: rows.at(-1)!.id })).length > 0
  await connection.close()

  if (json) {
    const list = rows.map((row) => (outcomes.has(row.id) ? { ...row, orphaned: true } : row))
    stdout.write(forStream(`${JSON.stringify(list, null, 2)}\n`, stdout))
  } else stdout.write(`${table(context, rows, outcomes, stdout.columns)}\n`)
  if (!json && rows.length === 0)
    stderr.write((status ?? agent ?? user ?? model ?? protocol ?? search) ? 'no matching runs\n' : 'no runs yet\n')
  if (hasMore) {
    const cure = count < 1000 ? `--limit ${Math.min(1000, count * 5)}` : '--status, --agent or --user'
    stderr.write(`(more runs: use ${cure})\n`)
  }
  if (outcomes.size > 0)
    stderr.write(
      `${outlook([...outcomes.values()], (await sharedStoreUrl(context, where)) ? 'shares the store' : `is running on ${where.data}`)}\n`,
    )
}

async function outcomesOf(connection: Connection, rows: RunRow[]): Promise<Map<string, OrphanOutcome>> {
  const outcomes = new Map<string, OrphanOutcome>()
  for (const row of rows) {
    const outcome = await connection.orphanOutcome(row)
    if (outcome !== undefined) outcomes.set(row.id, outcome)
  }
  return outcomes
}

/** How the next server continues runs whose process is gone. */
function outlook(outcomes: OrphanOutcome[], where: string): string {
  const clause = (outcome: OrphanOutcome, words: string) => {
    const count = outcomes.filter((each) => each === outcome).length
    return count === 0 ? [] : [words.replace('N', String(count))]
  }
  const will = [...clause('resumed', 'resume N (recover: true)'), ...clause('interrupted', 'mark N as interrupted')]
  const runs = outcomes.length === 1 ? '1 run has' : `${outcomes.length} runs have`
  return `no server ${where}: ${runs} not ended; the next millrace serve will ${will.join(' and ')}`
}

/** `run_` and eight digits. */
const shortId = 12
const head = ['RUN', 'AGENT', 'STATUS', 'STARTED', 'TOOK', 'TOKENS', 'TITLE']

/** On a terminal with `columns` columns, each run is one line: ids, times and titles are shortened. */
function table(
  context: CommandContext,
  rows: RunRow[],
  outcomes: ReadonlyMap<string, OrphanOutcome>,
  columns = Infinity,
): string {
  const cells = rows.map((row) => toCells(row, outcomes.has(row.id)))
  const roomForTitle = () => {
    const before = columnWidths([head, ...cells]).slice(0, -1)
    return columns - before.reduce((sum, width) => sum + width + 2, 0)
  }
  if (roomForTitle() < 20) {
    // Every command accepts a prefix of an id.
    const isUnique = new Set(rows.map(({ id }) => id.slice(0, shortId))).size === rows.length
    for (const row of cells) {
      if (isUnique) row[0] = row[0]!.slice(0, shortId)
      row[3] = row[3]!.slice('2026-'.length, -':00'.length)
    }
  }
  const room = Math.max(5, Math.min(60, roomForTitle()))
  for (const row of cells) row[6] = cut(row[6]!, room)
  return formatTable(head, cells, { style: (...cell) => style(context, ...cell) })
}

function style(context: CommandContext, cell: string, column: number, row: number): string {
  if (row < 0) return paint(context, 'bold', cell)
  return column === head.indexOf('STATUS') ? paintStatus(context, cell) : cell
}

function toCells(
  { id, agent, status, startedAt, updatedAt, endedAt, usage, title }: RunRow,
  isLost: boolean,
): string[] {
  // For a running one, the time so far.
  const end = endedAt ?? (isLost ? updatedAt : status === 'running' ? Date.now() : undefined)
  const took = end === undefined ? '' : formatDuration(end - startedAt)
  const words = (title ?? '').replaceAll(/\s+/gu, ' ')
  return [id, agent, isLost ? orphaned : status, formatTime(startedAt), took, formatTokens(usage), words]
}
