/** `millrace audit`: who did what, and what was refused. */
import { Option, type Command } from 'commander'
import type { AuditQuery, AuditRow } from '../../part/audit.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { CommandContext } from '../context.ts'
import { openConnection, type ConnectionFlags } from '../connection.ts'
import { formatTime } from '../terminal/format.ts'
import { forStream, paint, writeOut } from '../terminal/output.ts'
import { formatTable } from '../terminal/table.ts'
import { addConnectionOptions, choice, examples } from './options.ts'
import { MillraceError } from '../../part/error.ts'

export function addAuditCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('audit')
    .summary('List who did what, and what was refused')
    .description('List who stopped, deleted, answered or edited what, changes of keys, and refused requests.')
    .option('--user <id>', 'Only what this user or key did')
    .option('--action <name>', 'Only this action, such as runs.stop')
    .addOption(choice('--outcome <what>', 'Only what was done, or refused', ['done', 'refused']))
    .addOption(new Option('--limit <n>', 'Maximum number of rows, 1 to 1000').default('50', '50'))
    .option('--json', 'Print the rows as JSON')
    .addHelpText(
      'after',
      `
A server shows an operator the rows of its tenant. Rows are deleted with old runs:
see record.retention. They have no text of prompts or answers.
${examples('millrace audit', 'millrace audit --user u1 --action runs.delete', 'millrace audit --outcome refused --limit 200', 'millrace audit --json | jq ".[].resource"')}`,
    )
    .action((flags: AuditFlags) => printAudit(context, flags))
  addConnectionOptions(command)
}

interface AuditFlags extends ConnectionFlags {
  user?: string
  action?: string
  outcome?: AuditRow['outcome']
  limit: string
  json?: boolean
}

async function printAudit(
  context: CommandContext,
  { user, action, outcome, limit, json = false, ...where }: AuditFlags,
): Promise<void> {
  const count = Number(limit)
  if (!/^\d+$/u.test(limit) || count < 1 || count > 1000) {
    throw new MillraceError('usage', `--limit must be a number from 1 to 1000, not "${limit}".`)
  }
  const connection = await openConnection(context, where)
  try {
    const query: AuditQuery = { limit: count, ...omitUndefined({ principal: user, action, outcome }) }
    const rows = await connection.audit(query)
    if (json) return await writeOut(context, `${forStream(JSON.stringify(rows, null, 2), context.stdout)}\n`)
    if (rows.length === 0) return void context.stderr.write('no matching rows\n')
    await writeOut(context, `${table(context, rows)}\n`)
  } finally {
    await connection.close()
  }
}

const head = ['TIME', 'WHO', 'TENANT', 'ACTION', 'RESOURCE', 'OUTCOME', 'ADDRESS']

function table(context: CommandContext, rows: readonly AuditRow[]): string {
  const cells = rows.map(({ time, principal, tenant, action, resource, outcome, address }) => [
    formatTime(time),
    principal === '' ? '(no one)' : principal,
    tenant,
    action,
    resource,
    outcome,
    address,
  ])
  return formatTable(head, cells, {
    style: (cell, column, row) => {
      if (row < 0) return paint(context, 'bold', cell)
      return column === 5 && cell.startsWith('refused') ? paint(context, 'red', cell) : cell
    },
  })
}
