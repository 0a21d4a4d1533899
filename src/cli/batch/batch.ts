/** `millrace run --input cases.jsonl`: checks everything before the first run starts. */
import { leave, type CommandContext, type Output } from '../context.ts'
import { MillraceError, messageOf, toErrorValue } from '../../part/error.ts'
import type { NamedAgent } from '../paths.ts'
import type { AgentConnection } from '../connection.ts'
import { checkAgent, openAgents } from '../connection/agents.ts'
import type { RunFlags } from '../commands/run.ts'
import { printable } from '../terminal/output.ts'
import { readBatch, inputOf, type BatchLine, openSink, type BatchResult, type ResultSink } from './files.ts'
import { pause } from '../../async/pause.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { ClientResult } from '../../client/client-run.ts'
import type { MillraceClient } from '../../client/client.ts'
import { onEnding, type Ending } from '../process-events.ts'
import { addUsage, type Usage } from '../../part/usage.ts'
import { formatCost, formatDuration, formatTokens } from '../terminal/format.ts'
import { cut } from '../terminal/table.ts'

export async function batchCommand(
  context: CommandContext,
  agent: NamedAgent,
  input: string,
  flags: RunFlags,
): Promise<void> {
  const { message, file, thread, format, yes = false, bail = false } = flags
  const others = {
    '-m': message,
    '--file': file,
    '--thread': thread,
    '--format': format === 'text' ? undefined : format,
  }
  const other = Object.entries(others).find(([, given]) => given !== undefined)?.[0]
  if (other !== undefined)
    throw new MillraceError('usage', `${other} cannot be combined with a batch: each line is an input.`)
  const concurrency = Number(flags.concurrency ?? 4)
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > 1000) {
    throw new MillraceError('usage', `--concurrency must be a number from 1 to 1000, not "${flags.concurrency}".`)
  }
  const lines = readBatch(context, input)
  await checkAgent(context, agent, flags)
  const sink = openSink(context, flags, lines)
  const connection = await openAgents(context, { ...flags, migrates: true }, agent.file !== undefined)
  if (connection.notice !== undefined) context.stderr.write(`${printable(connection.notice)}\n`)
  const code = await runBatch(context, connection, { agent: agent.id, lines, sink, concurrency, bail, yes })
  await connection.close()
  await leave(context, code)
}

/** Runs an agent on many inputs, several at the same time. */
interface Batch {
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
async function runBatch(context: CommandContext, connection: AgentConnection, batch: Batch): Promise<number> {
  const { lines, sink, concurrency, bail } = batch
  const open = lines.filter((line) => !sink.isDone(line))
  const progress = createBatchProgress(context, lines.length, lines.length - open.length)
  const active = new Map<BatchLine, string>()
  let ending: Ending | undefined
  const abort = new AbortController()
  let next = 0
  const off = onEnding(context, (how) => {
    ending = how
    abort.abort()
    for (const run of active.values()) stop(run, how)
  })
  const stop = (run: string, { reason }: Ending) => void connection.client.stop(run, reason).catch(() => undefined)

  async function work(): Promise<void> {
    while (next < open.length && ending === undefined && !(bail && progress.failed > 0)) {
      const line = open[next++]!
      const onStart = (run: string) => {
        active.set(line, run)
        // The batch was stopped while this run was starting.
        if (ending !== undefined) stop(run, ending)
      }
      const result = await runLine(connection.client, batch, line, { onStart, signal: abort.signal })
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
    const run = await startWhenFree(() => {
      began = performance.now()
      return client.run({ agent, input, messages: messages as object[] })
    }, signal)
    id = await run.id
    onStart(id)
    const { outcome, text: said, ...rest } = await settleApprovals(run, yes)
    const { output, usage, cost, error = waitsFor(rest.requests) } = rest
    return omitUndefined({ line, hash, run: id, outcome, text: said, output, usage, cost, duration: duration(), error })
  } catch (thrown) {
    const error =
      thrown instanceof MillraceError ? toErrorValue(thrown) : { code: 'failed', message: messageOf(thrown) }
    return omitUndefined({ line, hash, run: id, outcome: 'failed', text: '', duration: duration(), error })
  }
}

/** Retries when a server is full or shuts down: its answer has the delay. */
async function startWhenFree<T extends { id: Promise<string> }>(start: () => T, signal: AbortSignal): Promise<T> {
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
async function settleApprovals(run: Answerable, yes: boolean): Promise<ClientResult> {
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

/** How far a batch is: a bar on a terminal, elsewhere a line for each tenth and for each failure. */
interface BatchProgress {
  add(result: BatchResult): void
  readonly failed: number
  /** Prints the last line. */
  end(): void
}

const width = 24

/** `before`: lines that were done by an earlier batch. */
export function createBatchProgress(
  context: CommandContext,
  total: number,
  before: number,
  stream: Output = context.stderr,
): BatchProgress {
  const began = performance.now()
  let done = 0
  let failed = 0
  let usage: Usage | undefined
  let cost: number | undefined = 0
  let isShown = false

  function clear(): void {
    if (isShown) stream.write('\r\u001b[K')
    isShown = false
  }

  function amounts(): string {
    return [
      ...(failed > 0 ? [`${failed} failed`] : []),
      ...((usage?.totalTokens ?? 0) > 0 ? [`${formatTokens(usage)} tokens`] : []),
      ...(cost === undefined || cost === 0 ? [] : [formatCost(cost)]),
    ].join(', ')
  }

  function show(): void {
    const at = before + done
    const left = ((performance.now() - began) / done) * (total - at)
    const facts = [`${at}/${total}`, amounts(), at < total ? `ETA ${formatDuration(left)}` : ''].filter(
      (each) => each !== '',
    )
    if (stream.isTTY) {
      clear()
      const full = Math.round((at / total) * width)
      const line = `${'█'.repeat(full)}${'░'.repeat(width - full)} ${facts.join(', ')}`
      stream.write(cut(line, (stream.columns || 80) - 1))
      isShown = true
    } else if (tenth(at) > tenth(at - 1) && at < total) stream.write(`${facts.join(', ')}\n`)
  }

  function tenth(at: number): number {
    return Math.floor((at / total) * 10)
  }

  return {
    get failed() {
      return failed
    },
    add({ line, run, outcome, error, usage: used, cost: spent }) {
      done++
      if (used !== undefined) usage = addUsage(usage, used)
      const isFree = (used?.totalTokens ?? 0) === 0
      cost = cost === undefined || (spent === undefined && !isFree) ? undefined : cost + (spent ?? 0)
      if (outcome !== 'completed') {
        failed++
        clear()
        const why = error === undefined ? '' : `: ${error.message}`
        stream.write(printable(`line ${line}: ${outcome}${why}${run === undefined ? '' : ` (${run})`}\n`))
      }
      show()
    },
    end() {
      clear()
      const facts = [`${done - failed} completed`, amounts(), ...(before > 0 ? [`${before} done before`] : [])]
      const rest = total - before - done
      if (rest > 0) facts.push(`${rest} not run`)
      stream.write(
        `${[...facts.filter((each) => each !== ''), formatDuration(performance.now() - began)].join(', ')}\n`,
      )
    },
  }
}
