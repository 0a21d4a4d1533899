/** `millrace stats`: totals and percentiles over many runs, from the live server or the database. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { ageOf } from '../../record/policy.ts'
import type { Percentiles, Stats, StatsQuery } from '../../record/stats.ts'
import { toUsed } from '../../record/stats.ts'
import { openConnection, type ConnectionFlags } from '../connection.ts'
import { formatDuration, formatTime, formatUsage } from '../terminal/format.ts'
import { forStream, printable, writeOut } from '../terminal/output.ts'
import { formatTable } from '../terminal/table.ts'
import { addConnectionOptions, choice, examples } from './options.ts'

export function addStatsCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('stats')
    .summary('Count runs, tokens, cost and durations')
    .description('Count the runs of the last days: how they ended, and their tokens, cost and durations.')
    .addOption(choice('--by <what>', 'One row for each of these', statsGroups).default('model'))
    .addOption(new Option('--since <time>', 'How long ago, such as 24h, or a time').default('7d'))
    .option('--until <time>', 'The same for the end (default: now)')
    .option('--agent <id>', 'Only runs of this agent')
    .option('--json', 'Print all statistics as JSON')
    .addHelpText(
      'after',
      `
A time is written as 2026-01-31 or 2026-01-31T12:00:00Z. Where a price is unknown,
the cost says so. IN includes cached tokens, OUT includes reasoning.
${examples('millrace stats', 'millrace stats --by agent --since 24h', 'millrace stats --by day --since 2026-01-01 --until 2026-02-01', 'millrace stats --json | jq .outcomes')}`,
    )
    .action((flags: StatsFlags) => printStats(context, flags))
  addConnectionOptions(command)
}

const statsGroups = ['model', 'agent', 'day', 'tool', 'thread'] as const

interface StatsFlags extends ConnectionFlags {
  by: (typeof statsGroups)[number]
  since: string
  until?: string
  agent?: string
  json?: boolean
}

async function printStats(
  context: CommandContext,
  { by, since, until, agent, json = false, ...where }: StatsFlags,
): Promise<void> {
  /** By the clock of the store. */
  const queryAt = (now: number) => {
    const query = {
      since: toTime('--since', since, now),
      until: until === undefined ? now + 1 : toTime('--until', until, now),
      agent,
    }
    if (query.since >= query.until) throw new MillraceError('usage', '--since must be a time before --until.')
    return query
  }
  const stats = await read(context, where, queryAt)
  if (json) return writeOut(context, `${forStream(JSON.stringify(stats, null, 2), context.stdout)}\n`)
  const sections = [summary(stats), ...tables(stats, by)].filter((text) => text !== '')
  await writeOut(context, `${sections.join('\n\n')}\n`)
}

async function read(
  context: CommandContext,
  where: ConnectionFlags,
  queryAt: (now: number) => StatsQuery,
): Promise<Stats> {
  // Mistakes in the flags are reported before anything is opened.
  queryAt(Date.now())
  const connection = await openConnection(context, where)
  try {
    return await connection.stats(queryAt)
  } finally {
    await connection.close()
  }
}

/** Epoch ms of a duration that has passed, of a date, or as given. */
export function toTime(flag: string, text: string, now: number): number {
  const age = /[a-z]$/iu.test(text.trim()) ? ageOf(text) : undefined
  const time = age !== undefined ? now - age : /^\d{10,}$/u.test(text) ? Number(text) : Date.parse(text)
  if (Number.isFinite(time) && time >= 0) return time
  throw new MillraceError(
    'usage',
    `${flag} must be a duration such as 7d or 12h, or a time such as 2026-01-31, not "${text}".`,
  )
}

function summary({ since, until, outcomes, errors, duration }: Stats): string {
  const runs = outcomes.reduce((sum, { count }) => sum + count, 0)
  const list = (all: Stats['outcomes']) => all.map(({ name, count }) => `${count} ${printable(name)}`).join(', ')
  const lines = [
    `${formatTime(since)} to ${formatTime(until)} UTC`,
    `runs      ${runs}${runs === 0 ? '' : `: ${list(outcomes)}`}`,
    ...(errors.length === 0 ? [] : [`errors    ${list(errors)}`]),
    ...(duration === null ? [] : [`duration  ${timesOf(duration).join(', ')} (p50, p95, p99)`]),
  ]
  return lines.join('\n')
}

function tables(stats: Stats, by: StatsFlags['by']): string[] {
  if (by === 'tool') return [formatTimes('TOOL', stats.toolCalls)]
  const lists = {
    model: stats.usageByModel,
    agent: stats.usageByAgent,
    day: stats.usageByDay,
    thread: stats.usageByThread,
  }
  const rows = lists[by].map((row) => [row.name, toUsed(row)] as const)
  const total = stats.usage !== null && rows.length > 1 ? [['total', toUsed(stats.usage)] as const] : []
  const usage = formatUsage(by.toUpperCase(), [...rows, ...total])
  return by === 'model' ? [usage, formatTimes('MODEL', stats.modelCalls)] : [usage]
}

function formatTimes(head: string, rows: readonly Percentiles[]): string {
  if (rows.length === 0) return ''
  const cells = rows.map((row) => [row.name, String(row.count), ...timesOf(row)])
  return formatTable([head, 'CALLS', 'P50', 'P95', 'P99'], cells)
}

function timesOf({ p50, p95, p99 }: Percentiles): string[] {
  return [p50, p95, p99].map(formatDuration)
}
