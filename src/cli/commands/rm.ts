/** `millrace rm`: deletes runs and conversations, through the live server or in the database. */
import type { Command } from 'commander'
import { createInterface } from 'node:readline/promises'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { openConnection, type ConnectionFlags, type RunUpkeep } from '../connection.ts'
import { forStream, printable } from '../terminal/output.ts'
import { addConnectionOptions, examples } from './options.ts'

interface RemoveFlags extends ConnectionFlags {
  yes?: boolean
  json?: boolean
}

export function addRmCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('rm')
    .argument('<run|thread...>', 'Runs, or conversations with all of their runs')
    .summary('Delete runs or conversations')
    .description(
      'Delete runs or conversations, with their logs, rows, views, file logs and raw logs. They cannot be brought back.',
    )
    .option('-y, --yes', 'Do not ask')
    .option('--json', 'Print the ids of the deleted runs as JSON')
    .addHelpText(
      'after',
      `
An active run is refused: stop it first. So is, in a data folder, one of which
forks are left, because they share its log: delete them first. "millrace export"
keeps a copy.
${examples('millrace rm run_1a2b3c', 'millrace rm thread_4d5e6f --yes')}`,
    )
    .action((targets: string[], flags: RemoveFlags) => removeTargets(context, targets, flags))
  addConnectionOptions(command)
}

async function removeTargets(context: CommandContext, targets: string[], flags: RemoveFlags): Promise<void> {
  if (flags.yes !== true && !(await confirmed(context, targets))) return
  const connection = await openConnection(context, flags)
  try {
    await removeAll(context, await connection.upkeep(), targets, flags)
  } finally {
    await connection.close()
  }
}

/** If one cannot be deleted, those before it are still reported. */
async function removeAll(
  context: CommandContext,
  upkeep: RunUpkeep,
  targets: string[],
  flags: RemoveFlags,
): Promise<void> {
  const deleted: string[] = []
  try {
    for (const target of targets) deleted.push(...(await remove(upkeep, target)))
  } finally {
    if (flags.json === true) context.stdout.write(`${forStream(JSON.stringify({ deleted }), context.stdout)}\n`)
    else if (deleted.length > 0)
      context.stderr.write(
        printable(`deleted ${deleted.length === 1 ? `run ${deleted[0]}` : `${deleted.length} runs`}\n`),
      )
  }
}

async function confirmed(context: CommandContext, targets: string[]): Promise<boolean> {
  if (!context.stdin.isTTY) throw new MillraceError('usage', 'What is deleted cannot be brought back. Add --yes.')
  const lines = createInterface({ input: context.stdin, output: context.stderr })
  const answer = await lines.question(`Delete ${targets.join(', ')}? This cannot be undone. [y/N] `)
  lines.close()
  return /^y(?:es)?$/iu.test(answer.trim())
}

async function remove(upkeep: RunUpkeep, target: string): Promise<string[]> {
  try {
    return (await upkeep.deleteRun(target)).deleted
  } catch (error) {
    if (codeOf(error) !== 'unknown-run') throw error
  }
  try {
    return (await upkeep.deleteThread(target)).deleted
  } catch (error) {
    if (codeOf(error) !== 'unknown-thread') throw error
    throw new MillraceError(
      'unknown-run',
      `There is no run and no thread ${target}. millrace ps and millrace threads list them.`,
    )
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof MillraceError ? error.code : undefined
}
