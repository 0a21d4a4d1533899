/** `millrace compact` and `millrace prune`: through the live server, or in the database. */
import { setImmediate as turn } from 'node:timers/promises'
import type { CommandContext } from '../context.ts'
import { MillraceError, type ErrorValue } from '../../part/error.ts'
import { parseJson } from '../../part/json.ts'
import { timeOf } from '../../part/log.ts'
import type { Upkeep } from '../../part/upkeep.ts'
import { ageOf, ageWords, saySize, sizeOf, sizeWords } from '../../record/policy.ts'
import { compactRuns, eraseAll, pruneRuns, type CompactedRuns, type PrunedRuns } from '../../record/upkeep.ts'
import { createRequest } from '../remote-request.ts'
import { openForUpkeep } from '../upkeep-store.ts'
import { forStream } from '../printable.ts'
import { placeOf, type Where } from '../where.ts'

interface UpkeepFlags extends Where {
  olderThan?: string
  maxSize?: string
  erase?: boolean
  dryRun?: boolean
  json?: boolean
}

type Done<T> = T & { dryRun: boolean; size: number }
type Tell = (runs: number) => void

export async function compactCommand(context: CommandContext, flags: UpkeepFlags): Promise<void> {
  const olderThan = amount('--older-than', flags.olderThan, ageOf, ageWords)!
  const { dryRun = false } = flags
  const done = await work<CompactedRuns>(context, flags, '/api/compact', { olderThan, dryRun }, (upkeep, tell, now) =>
    compactRuns(upkeep, { endedBefore: now - olderThan, dryRun, tell, rest: turn }),
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
  const done = await work<PrunedRuns>(
    context,
    flags,
    '/api/prune',
    { olderThan, maxBytes, erase, dryRun },
    (upkeep, tell, now) => {
      const idleBefore = olderThan === undefined ? undefined : now - olderThan
      return pruneRuns(upkeep, { idleBefore, maxBytes, dryRun, tell, rest: turn })
    },
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

async function work<T>(
  context: CommandContext,
  where: Where,
  path: string,
  body: object,
  task: (upkeep: Upkeep, tell: Tell, now: number) => Promise<T>,
): Promise<Done<T>> {
  const { tell, clear } = progress(context)
  try {
    const place = await placeOf(context, where)
    if (place.type === 'server')
      return await ask<T>(
        context,
        await createRequest(place.server.url, place.server)(path, {
          method: 'POST',
          type: 'application/json',
          body: JSON.stringify(body),
        }),
        tell,
      )
    const store = await openForUpkeep(context, place)
    const { upkeep } = store
    try {
      await store.records?.settle()
      const done = await task(upkeep, tell, timeOf(store))
      const { dryRun, erase } = body as { dryRun: boolean; erase?: boolean }
      if (!dryRun) await upkeep.vacuum({ rest: turn })
      if (!dryRun && erase === true) await eraseAll(upkeep, { rest: turn })
      const { used: size } = await upkeep.size()
      return { ...done, dryRun, size }
    } finally {
      await store.close()
    }
  } finally {
    clear()
  }
}

type Line<T> = { progress?: { runs: number }; done?: Done<T>; error?: ErrorValue }

async function ask<T>(context: CommandContext, response: Response, tell: Tell): Promise<Done<T>> {
  let rest = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    for (const line of lines) {
      const { progress: so, done, error } = parseJson(line) as Line<T>
      if (error !== undefined) throw new MillraceError(error.code, error.message)
      if (so !== undefined) tell(so.runs)
      if (done !== undefined) return done
    }
  }
  throw new MillraceError(
    'server',
    'Lost the connection to the server. What was done stays done: run the command again.',
  )
}

/** Counts runs in one line of a terminal. */
function progress(context: CommandContext): { tell: Tell; clear: () => void } {
  if (!context.stderr.isTTY) return { tell: () => undefined, clear: () => undefined }
  return {
    tell: (runs) => void context.stderr.write(`\r… ${counted(runs)}`),
    clear: () => void context.stderr.write('\r\u001b[K'),
  }
}
