/** `millrace usage`: what users, tenants, keys and agents have used, and the caller's quotas. */
import { Option, type Command } from 'commander'
import { MillraceError } from '../../part/error.ts'
import type { QuotaUse } from '../../part/quota.ts'
import { usageGroups, type UsageGroup, type UsageReport, type UsageReportRow } from '../../part/usage-report.ts'
import type { CommandContext } from '../context.ts'
import { openConnection, type ConnectionFlags } from '../connection.ts'
import { formatCost, formatTime } from '../terminal/format.ts'
import { forStream, writeOut } from '../terminal/output.ts'
import { formatTable } from '../terminal/table.ts'
import { addConnectionOptions, choice, examples } from './options.ts'
import { toTime } from './stats.ts'

export function addUsageCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('usage')
    .summary('Show what users, tenants, keys and agents have used')
    .description('Show runs, tokens and cost of each user, tenant, key or agent. On a server also your quotas.')
    .addOption(choice('--by <what>', 'One row for each of these', usageGroups).default('user'))
    .addOption(new Option('--since <time>', 'How long ago, such as 24h, or a time').default('30d'))
    .option('--until <time>', 'The same for the end (default: now)')
    .option('--json', 'Print the rows and quotas as JSON')
    .addHelpText(
      'after',
      `
A time is written as 2026-01-31 or 2026-01-31T12:00:00Z. A server shows a user its
own usage, and an operator that of its tenant.
${examples('millrace usage', 'millrace usage --by tenant --since 2026-01-01 --until 2026-02-01', 'millrace usage --by agent --since 24h --url https://agents.example', 'millrace usage --json | jq .quotas')}`,
    )
    .action((flags: UsageFlags) => printUsage(context, flags))
  addConnectionOptions(command)
}

interface UsageFlags extends ConnectionFlags {
  by: UsageGroup
  since: string
  until?: string
  json?: boolean
}

async function printUsage(
  context: CommandContext,
  { by, since, until, json = false, ...where }: UsageFlags,
): Promise<void> {
  const queryAt = (now: number) => {
    const query = {
      by,
      since: toTime('--since', since, now),
      until: until === undefined ? now + 1 : toTime('--until', until, now),
    }
    if (query.since >= query.until) throw new MillraceError('usage', '--since must be a time before --until.')
    return query
  }
  // Mistakes in the flags are reported before anything is opened.
  queryAt(Date.now())
  const connection = await openConnection(context, where)
  try {
    const report = await connection.usage(queryAt)
    const text = json ? JSON.stringify(report, null, 2) : pageOf(report)
    await writeOut(context, `${json ? forStream(text, context.stdout) : text}\n`)
  } finally {
    await connection.close()
  }
}

function pageOf({ by, since, until, rows, quotas = [] }: UsageReport & { quotas?: QuotaUse[] }): string {
  const time = `${formatTime(since)} to ${formatTime(until)} UTC`
  const sections = [rows.length === 0 ? `${time}\nnothing was used` : `${time}\n\n${tableOf(by, rows)}`]
  if (quotas.length > 0) sections.push(quotaTable(quotas))
  return sections.join('\n\n')
}

const nobody: Record<UsageGroup, string> = { user: '(no one)', tenant: '(no tenant)', key: '(no key)', agent: '' }

function tableOf(by: UsageGroup, rows: readonly UsageReportRow[]): string {
  const hasTenant = rows.some(({ tenant }) => tenant !== undefined && tenant !== '')
  const head = [by.toUpperCase(), ...(hasTenant ? ['TENANT'] : []), 'RUNS', 'IN', 'OUT', 'TOKENS', 'COST']
  const cells = rows.map((row) => [
    row.name === '' ? nobody[by] : row.name,
    ...(hasTenant ? [row.tenant ?? ''] : []),
    String(row.runs),
    String(row.inputTokens ?? ''),
    String(row.outputTokens ?? ''),
    String(row.totalTokens),
    costOf(row),
  ])
  return formatTable(head, cells)
}

/** An unknown price is not 0. */
function costOf({ cost, unpriced }: UsageReportRow): string {
  if (unpriced === 0) return formatCost(cost)
  return cost === 0 ? 'unknown' : `${formatCost(cost)} + unknown`
}

function quotaTable(quotas: readonly QuotaUse[]): string {
  const cells = quotas.map(({ which, limit, used, resetsAt }) => [
    which,
    used === undefined ? '' : amountOf(which, used),
    amountOf(which, limit),
    resetsAt === undefined ? '' : `${formatTime(resetsAt)} UTC`,
  ])
  return formatTable(['QUOTA', 'USED', 'LIMIT', 'RESETS'], cells)
}

function amountOf(which: string, amount: number): string {
  return which.includes('.usd') ? formatCost(amount) : String(amount)
}
