/** `millrace logs`: the entries of a run. */
import { Option, type Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { type Entry, isDelta, mergeDeltas } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { openConnection, type ConnectionFlags, findRun } from '../connection.ts'
import { formatActor } from '../terminal/format.ts'
import { forStream, printable, writeOut } from '../terminal/output.ts'
import { cut, widthOf } from '../terminal/table.ts'
import { addConnectionOptions, examples, runAbout, splitWords, typeOption } from './options.ts'

interface LogsFlags extends ConnectionFlags {
  follow?: boolean
  since: string
  type?: string[]
  json?: boolean
  raw?: boolean
}

export function addLogsCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('logs')
    .summary('Print the log of a run')
    .description('Print the log of a run, one entry per line.')
    .argument('<run>', runAbout)
    .option('-f, --follow', 'Keep printing new entries until the run ends')
    .addOption(new Option('--since <seq>', 'Only entries after this sequence number').default('0', '0'))
    .addOption(typeOption())
    .option('--raw', 'Print every delta on its own line instead of joining them')
    .option('--json', 'Print entries as NDJSON, exactly as recorded')
    .addHelpText(
      'after',
      examples('millrace logs run_1a2b3c --follow', 'millrace logs run_1a2b3c --type tool-call,tool-result'),
    )
    .allowExcessArguments()
    .action((_run: string, flags: LogsFlags, { args }: Command) => printLog(context, args, flags))
  addConnectionOptions(command)
}

async function printLog(
  context: CommandContext,
  words: string[],
  { follow = false, since, type, json = false, raw = false, ...where }: LogsFlags,
) {
  const { run: text, types: listed } = splitWords(words, type)
  if (!/^\d+$/u.test(since)) throw new MillraceError('usage', `--since must be a whole number, not "${since}".`)
  const types = listed && new Set(listed)
  const connection = await openConnection(context, where)
  try {
    const run = await findRun(connection, text)
    // A server rejects it; the database would return nothing.
    if (Number(since) > run.lastSeq) {
      throw new MillraceError(
        'usage',
        `--since ${since} is after the end of the log: its last entry is ${run.lastSeq}.`,
      )
    }
    let written: Promise<void> = Promise.resolve()
    const write = (entry: Entry) => {
      const line = json ? forStream(JSON.stringify(entry), context.stdout) : toLine(context, entry)
      written = written.then(() => writeOut(context, `${line}\n`))
    }
    const merger = json || raw ? { apply: write, flush: () => undefined } : createDeltaMerger(write, follow)
    for await (const entry of connection.read(run.id, Number(since), follow)) {
      if (types !== undefined && !types.has(entry.type)) continue
      merger.apply(entry)
      await written
    }
    merger.flush()
    await written
    const isOrphan =
      follow && (await connection.orphanOutcome({ ...run, status: await connection.status(run.id) })) !== undefined
    if (isOrphan)
      context.stderr.write(printable(`${run.id} has not ended, but no process is running it: this is the log so far\n`))
  } finally {
    await connection.close()
  }
}

/** `by` before the fields: on a terminal the end of the line may be cut off. */
function toLine(context: CommandContext, entry: Entry): string {
  const { seq, timestamp, step, type, ...rest } = entry
  const actor = entry.type === 'run-start' ? entry.user : entry.type === 'response' ? entry.by : undefined
  const time = new Date(timestamp).toISOString().slice(11, 23)
  const head = printable(`${String(seq).padStart(5)}  ${time}  ${type.padEnd(17)}  ${step.padEnd(16)}  `)
  const by = actor === undefined ? '' : `by ${formatActor(actor)}  `
  const text = printable(`${by}${JSON.stringify(rest)}`)
  // On a terminal, an entry must fit on one line.
  const room = Math.max(20, (context.stdout.columns || widthOf(head) + 160) - widthOf(head))
  return `${head}${text === '{}' ? '' : cut(text, room)}`.trimEnd()
}

/** Joins the many deltas of a block into one entry, for reading. */
interface DeltaMerger {
  apply(entry: Entry): void
  /** Emits the buffered entries. Call it at the end. */
  flush(): void
}

/** ms after which the buffered part of an unfinished block is emitted. */
const maxDelay = 500
/** Maximum number of buffered entries. */
const maxBuffered = 1000

/** `isLive`: the run is still going, so nothing is buffered for long. */
export function createDeltaMerger(emit: (entry: Entry) => void, isLive: boolean): DeltaMerger {
  /** By block, because the deltas of parallel branches are interleaved. */
  const buffered = new Map<string, Entry[]>()
  let count = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const blocks = [...buffered.values()]
    buffered.clear()
    count = 0
    for (const block of blocks) mergeDeltas(block).forEach(emit)
  }

  return {
    flush,
    apply(entry) {
      if (!isDelta(entry)) {
        flush()
        emit(entry)
        return
      }
      const key = `${entry.type} ${entry.step} ${entry.id}`
      const block = buffered.get(key)
      if (block === undefined) buffered.set(key, [entry])
      else block.push(entry)
      if (++count >= maxBuffered) flush()
      else if (isLive) timer ??= setTimeout(flush, maxDelay)
    },
  }
}
