/** `millrace compact` and `millrace prune`: through the live server, or in the database. */
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { ageOf, ageWords, saySize, sizeOf, sizeWords } from '../../record/policy.ts'
import { openConnection, type ConnectionFlags, type OnProgress, type RunUpkeep } from '../connection.ts'
import { forStream } from '../terminal/output.ts'

interface UpkeepFlags extends ConnectionFlags {
  olderThan?: string
  maxSize?: string
  erase?: boolean
  dryRun?: boolean
  json?: boolean
}

export async function compactCommand(context: CommandContext, flags: UpkeepFlags): Promise<void> {
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

export async function pruneCommand(context: CommandContext, flags: UpkeepFlags): Promise<void> {
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

/** Opens what the flags name, and shows progress meanwhile. */
async function withUpkeep<T>(
  context: CommandContext,
  flags: ConnectionFlags,
  work: (upkeep: RunUpkeep, onProgress: OnProgress) => Promise<T>,
): Promise<T> {
  const { tell, clear } = progress(context)
  try {
    const connection = await openConnection(context, flags)
    try {
      return await work(await connection.upkeep(), tell)
    } finally {
      await connection.close()
    }
  } finally {
    clear()
  }
}

/** Counts runs in one line of a terminal. */
function progress(context: CommandContext): { tell: OnProgress; clear: () => void } {
  if (!context.stderr.isTTY) return { tell: () => undefined, clear: () => undefined }
  return {
    tell: (runs) => void context.stderr.write(`\r… ${counted(runs)}`),
    clear: () => void context.stderr.write('\r\u001b[K'),
  }
}
