/** `millrace compact` and `millrace prune`: through the live server, or in the database. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { ageOf, ageWords, saySize, sizeOf, sizeWords } from '../../record/policy.ts'
import { openConnection, type ConnectionFlags, type OnProgress, type RunUpkeep } from '../connection.ts'
import { forStream } from '../terminal/output.ts'
import { addConnectionOptions, examples } from './options.ts'

interface UpkeepFlags extends ConnectionFlags {
  olderThan?: string
  maxSize?: string
  erase?: boolean
  dryRun?: boolean
  json?: boolean
}

export function addCompactCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('compact')
    .summary('Merge the deltas of old runs')
    .description('Merge the deltas of runs that have ended, so that they take little more space than their text.')
    .addOption(new Option('--older-than <age>', 'Only runs that ended so long ago').default('1d'))
    .option('--dry-run', 'Change nothing, only say what would be merged')
    .option('--json', 'Print the result as JSON')
    .addHelpText(
      'after',
      `
Nothing that was said or done is lost: text, tool calls, results, times and
costs stay the same. Only the cut of the text into deltas goes. A client that
has read half of such a run must read it again from its start (410, compacted).
"millrace serve" does this by itself, a day after a run's end: see
record.compactAfter.
${examples('millrace compact', 'millrace compact --older-than 0s --dry-run')}`,
    )
    .action((flags: UpkeepFlags) => compactRuns(context, flags))
  addConnectionOptions(command)
}

export function addPruneCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('prune')
    .summary('Delete old runs')
    .description(
      'Delete runs that have ended. Runs that are active or suspended are kept, and those of conversations with such runs, ' +
        'those whose caller is active, and, in a data folder, those of which forks are left.',
    )
    .option('--older-than <age>', 'Runs whose conversation was not used for so long, such as 7d or 12h')
    .option('--max-size <size>', 'The oldest runs, until the data folder has this size, such as 500mb')
    .option('--erase', 'Then write the database anew: no byte of deleted runs is left in it')
    .option('--dry-run', 'Delete nothing, only say what would be deleted')
    .option('--json', 'Print the result as JSON')
    .addHelpText(
      'after',
      `
Deletes their logs, views, rows, file logs and raw logs. A conversation that
goes on forgets what was said in deleted runs. "millrace serve" does this by
itself: see record.retention.

The bytes of deleted runs are overwritten. In a database of more than 16 MB
fragments can be left in unused places: --erase, alone or with the others,
removes them too. Runs wait meanwhile, about a second for each 50 MB.
${examples('millrace prune --older-than 7d --dry-run', 'millrace prune --max-size 500mb', 'millrace prune --erase')}`,
    )
    .action((flags: UpkeepFlags) => pruneRuns(context, flags))
  addConnectionOptions(command)
}

async function compactRuns(context: CommandContext, flags: UpkeepFlags): Promise<void> {
  const olderThan = amount('--older-than', flags.olderThan, ageOf, ageWords)!
  const { dryRun = false } = flags
  const done = await withUpkeep(context, flags, (upkeep, onProgress) =>
    upkeep.compact({ olderThan, dryRun }, onProgress),
  )
  const { runs, entriesBefore, entriesAfter, bytesBefore, bytesAfter, size } = done
  if (runs === 0) return print(context, flags, done, 'nothing to merge')
  const what = `${entriesBefore} entries to ${entriesAfter}, ${saySize(bytesBefore)} to ${saySize(bytesAfter)}`
  print(
    context,
    flags,
    done,
    `${dryRun ? 'would merge' : 'merged'} ${counted(runs)}: ${what}${dryRun ? '' : `; ${saySize(size)} in all`}`,
  )
}

async function pruneRuns(context: CommandContext, flags: UpkeepFlags): Promise<void> {
  const olderThan = amount('--older-than', flags.olderThan, ageOf, ageWords)
  const maxBytes = amount('--max-size', flags.maxSize, sizeOf, sizeWords)
  const { dryRun = false, erase = false } = flags
  if (olderThan === undefined && maxBytes === undefined && !erase) {
    throw new MillraceError(
      'usage',
      'Say what to delete: --older-than 30d, or --max-size 2gb. Add --dry-run to see it first. Or --erase, for what was deleted before.',
    )
  }
  const done = await withUpkeep(context, flags, (upkeep, onProgress) =>
    upkeep.prune({ olderThan, maxBytes, erase, dryRun }, onProgress),
  )
  const { runs, bytes, size } = done
  const isErased = erase && !dryRun
  if (runs === 0) return print(context, flags, done, isErased ? 'nothing is left of deleted runs' : 'nothing to delete')
  const left = dryRun ? '' : `; ${saySize(size)} are left${isErased ? ', and nothing of deleted runs' : ''}`
  print(
    context,
    flags,
    done,
    `${dryRun ? 'would delete' : 'deleted'} ${counted(runs)} of about ${saySize(bytes)}${left}`,
  )
}

function counted(runs: number): string {
  return `${runs} ${runs === 1 ? 'run' : 'runs'}`
}

function print(context: CommandContext, { json }: UpkeepFlags, done: object, line: string): void {
  if (json) context.stdout.write(`${forStream(JSON.stringify(done), context.stdout)}\n`)
  else context.stderr.write(`${line}\n`)
}

function amount(
  flag: string,
  text: string | undefined,
  read: (value: string) => number | undefined,
  words: string,
): number | undefined {
  const value = text === undefined ? undefined : read(text)
  if (text !== undefined && value === undefined)
    throw new MillraceError('usage', `${flag} must be ${words}, not "${text}".`)
  return value
}

/** Opens the connection of the flags, and shows progress while `work` runs. */
async function withUpkeep<T>(
  context: CommandContext,
  flags: ConnectionFlags,
  work: (upkeep: RunUpkeep, onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const { report, clear } = progress(context)
  try {
    const connection = await openConnection(context, flags)
    try {
      return await work(await connection.upkeep(), report)
    } finally {
      await connection.close()
    }
  } finally {
    clear()
  }
}

/** Counts runs in one line of a terminal. */
function progress(context: CommandContext): { report: OnProgress; clear: () => void } {
  if (!context.stderr.isTTY) return { report: () => undefined, clear: () => undefined }
  return {
    report: (runs) => void context.stderr.write(`\r… ${counted(runs)}`),
    clear: () => void context.stderr.write('\r\u001b[K'),
  }
}
