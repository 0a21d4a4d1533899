/** `POST /api/compact` and `POST /api/prune`: runs the upkeep of the store at once. The response is NDJSON: progress, then the result. */
import { anySignal } from '../../async/any-signal.ts'
import { MillraceError, toErrorValue } from '../../part/error.ts'
import { type Store, timeOf } from '../../part/log.ts'
import type { Upkeep } from '../../part/upkeep.ts'
import { ageOf, ageWords, sizeOf, sizeWords } from '../../record/policy.ts'
import { createRest } from '../../record/housekeeping.ts'
import { compactRuns, eraseAll, pruneRuns } from '../../record/upkeep.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import type { HandlerContext } from '../handler-context.ts'
import type { Routes } from '../http/routes.ts'
import { readJson } from '../http/body.ts'
import { bad } from '../http/query.ts'

export function mountUpkeep(routes: Routes): void {
  routes.post('/api/compact', 'upkeep', async ({ server: context }, { raw }) => {
    const { olderThan, dryRun } = await readOptions(context, raw, ['olderThan', 'dryRun'])
    const endedBefore = timeOf(context.runtime.store) - (olderThan ?? 0)
    return work(context, raw, { dryRun }, (upkeep, options) => compactRuns(upkeep, { endedBefore, ...options }))
  })
  routes.post('/api/prune', 'upkeep', async ({ server: context }, { raw }) => {
    const known = ['olderThan', 'maxBytes', 'erase', 'dryRun']
    const { olderThan, maxBytes, erase, dryRun } = await readOptions(context, raw, known)
    if (olderThan === undefined && maxBytes === undefined && !erase)
      throw bad('olderThan', `${ageWords}; or send maxBytes, or erase`)
    const idleBefore = olderThan === undefined ? undefined : timeOf(context.runtime.store) - olderThan
    return work(context, raw, { dryRun, erase }, async (upkeep, options) => {
      if (idleBefore !== undefined && !dryRun) await context.runtime.store.audit?.prune(idleBefore)
      return pruneRuns(upkeep, { idleBefore, maxBytes, ...options })
    })
  })
}

interface UpkeepRequest {
  olderThan?: number
  maxBytes?: number
  erase: boolean
  dryRun: boolean
}

async function readOptions(
  { maxBodyBytes }: HandlerContext,
  request: Request,
  known: string[],
): Promise<UpkeepRequest> {
  const body = await readJson(request, maxBodyBytes)
  for (const key of Object.keys(body)) {
    if (!known.includes(key)) throw new MillraceError('bad-input', `unknown key "${key}"${didYouMean(key, known)}`)
  }
  const { olderThan, maxBytes, erase = false, dryRun = false } = body
  if (typeof dryRun !== 'boolean') throw bad('dryRun', 'true or false')
  if (typeof erase !== 'boolean') throw bad('erase', 'true or false')
  const options: UpkeepRequest = { dryRun, erase }
  if (olderThan !== undefined) options.olderThan = amount('olderThan', olderThan, ageOf, ageWords)
  if (maxBytes !== undefined) options.maxBytes = amount('maxBytes', maxBytes, sizeOf, sizeWords)
  return options
}

function amount(
  name: string,
  value: unknown,
  read: (value: string | number) => number | undefined,
  words: string,
): number {
  const found = typeof value === 'string' || typeof value === 'number' ? read(value) : undefined
  if (found === undefined) throw bad(name, words)
  return found
}

type UpkeepPass = (
  upkeep: Upkeep,
  options: { dryRun: boolean; rest: () => Promise<void>; tell: (runs: number) => void },
) => Promise<object>

/** Runs the task while the client reads. A disconnect ends it at the next slice; completed work stays. */
function work(
  { runtime }: HandlerContext,
  request: Request,
  { dryRun, erase = false }: { dryRun: boolean; erase?: boolean },
  task: UpkeepPass,
): Response {
  const { upkeep, records }: Store = runtime.store
  if (upkeep === undefined) {
    throw new MillraceError(
      'bad-request',
      'The runs of this server are in memory: there is nothing to compact or delete.',
    )
  }
  const leave = new AbortController()
  const bytes = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const say = (line: object) => {
        if (!leave.signal.aborted) controller.enqueue(bytes.encode(`${JSON.stringify(line)}\n`))
      }
      try {
        const rest = createRest(0.5, anySignal([leave.signal, request.signal]))
        await records?.settle()
        let reportedAt = performance.now()
        const report = (runs: number) => {
          if (performance.now() - reportedAt < 500) return
          reportedAt = performance.now()
          say({ progress: { runs } })
        }
        const done = await task(upkeep, { dryRun, rest, tell: report })
        if (!dryRun) await upkeep.vacuum({ rest })
        if (!dryRun && erase) await eraseAll(upkeep, { rest })
        const { used } = await upkeep.size()
        say({ done: { ...done, dryRun, size: used } })
      } catch (error) {
        say({ error: runtime.redact(toErrorValue(error)) })
      }
      if (!leave.signal.aborted) controller.close()
    },
    cancel: () => leave.abort(),
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } })
}
