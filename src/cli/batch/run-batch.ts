/** Runs an agent on many inputs, several at the same time. */
import type { CommandContext } from '../context.ts'
import { pause } from '../../async/pause.ts'
import { compact } from '../../part/compact.ts'
import { messageOf, MillraceError, toErrorValue } from '../../part/error.ts'
import type { ClientResult } from '../../client/client-run.ts'
import type { MillraceClient } from '../../client/client.ts'
import type { Backend } from '../backend.ts'
import { onEnding, type Ending } from '../stop-signals.ts'
import { inputOf, type BatchLine } from './batch-input.ts'
import { createBatchProgress } from './batch-progress.ts'
import type { BatchResult, ResultSink } from './batch-results.ts'

export interface Batch {
  agent: string
  lines: readonly BatchLine[]
  sink: ResultSink
  concurrency: number
  /** Start no further run after the first failure. */
  bail: boolean
  /** Approve every tool call that needs approval; otherwise each is denied. */
  yes: boolean
}

/** Returns the exit code. */
export async function runBatch(context: CommandContext, backend: Backend, batch: Batch): Promise<number> {
  const { lines, sink, concurrency, bail } = batch
  const open = lines.filter((line) => !sink.isDone(line))
  const progress = createBatchProgress(context, lines.length, lines.length - open.length)
  const active = new Map<BatchLine, string>()
  let ending: Ending | undefined
  const over = new AbortController()
  let next = 0
  const off = onEnding(context, (how) => {
    ending = how
    over.abort()
    for (const run of active.values()) stop(run, how)
  })
  const stop = (run: string, { reason }: Ending) => void backend.client.stop(run, reason).catch(() => undefined)

  async function work(): Promise<void> {
    while (next < open.length && ending === undefined && !(bail && progress.failed > 0)) {
      const line = open[next++]!
      const onStart = (run: string) => {
        active.set(line, run)
        // It was stopped while it was being started.
        if (ending !== undefined) stop(run, ending)
      }
      const result = await runLine(backend.client, batch, line, { onStart, signal: over.signal })
      active.delete(line)
      // A run that was stopped has no result: --resume runs it again.
      if (ending !== undefined && result.outcome !== 'completed') continue
      await sink.write(result)
      progress.add(result)
    }
  }

  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, open.length) }, work))
  } finally {
    off()
    sink.close()
    progress.end()
  }
  return ending?.code ?? (progress.failed > 0 ? 1 : 0)
}

/** Never rejects. */
async function runLine(
  client: MillraceClient,
  { agent, yes }: Batch,
  { line, hash, text }: BatchLine,
  { onStart, signal }: { onStart: (run: string) => void; signal: AbortSignal },
): Promise<BatchResult> {
  let began = performance.now()
  const duration = () => Math.round(performance.now() - began)
  let id: string | undefined
  try {
    const { messages, ...input } = inputOf(text)
    const run = await started(() => {
      began = performance.now()
      return client.run({ agent, input, messages: messages as object[] })
    }, signal)
    id = await run.id
    onStart(id)
    const { outcome, text: said, ...rest } = await answered(run, yes)
    const { output, usage, cost, error = waitsFor(rest.requests) } = rest
    return compact({ line, hash, run: id, outcome, text: said, output, usage, cost, duration: duration(), error })
  } catch (thrown) {
    const error =
      thrown instanceof MillraceError ? toErrorValue(thrown) : { code: 'failed', message: messageOf(thrown) }
    return compact({ line, hash, run: id, outcome: 'failed', text: '', duration: duration(), error })
  }
}

/** A server that is full, or shuts down, says when to ask again. */
async function started<T extends { id: Promise<string> }>(start: () => T, signal: AbortSignal): Promise<T> {
  for (;;) {
    const run = start()
    try {
      await run.id
      return run
    } catch (error) {
      const { status, retryAfter } = error as Partial<MillraceError>
      const isFull = (status === 429 || status === 503) && retryAfter !== undefined
      if (!isFull || signal.aborted) throw error
      await pause(retryAfter * 1000, signal)
    }
  }
}

type Answerable = Pick<ReturnType<MillraceClient['run']>, 'result' | 'answer'>

/** Nobody is asked for approvals. A run that waits for anything else stays suspended. */
async function answered(run: Answerable, yes: boolean): Promise<ClientResult> {
  for (;;) {
    const result = await run.result
    const approvals = result.requests?.filter(({ kind }) => kind === 'approval') ?? []
    if (approvals.length === 0) return result
    const answer = yes ? { approved: true } : { approved: false, reason: 'not approved: nobody is asked in a batch' }
    for (const { requestId } of approvals) await run.answer(requestId, answer)
  }
}

function waitsFor(requests: ClientResult['requests']): BatchResult['error'] {
  const [first] = requests ?? []
  if (first === undefined) return undefined
  const what = first.toolName ?? 'a value'
  return { code: 'suspended', message: `It waits for ${what}, and nobody is asked in a batch.` }
}
