/** `millrace run`: one run, or a batch. Streams the answer to stdout, everything else to stderr. */
import { dirname } from 'node:path'
import { leave, type CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { nameAgent } from '../agent-file.ts'
import { createAsk } from '../ask.ts'
import { namedWire } from '../named-wire.ts'
import { checkAgent, openBackend } from '../backend.ts'
import { isBatch, readInput, type InputFlags } from '../run-input.ts'
import { reportRun } from '../run-report.ts'
import { printable } from '../printable.ts'
import { waitingRun, warnOfEnd } from '../thread.ts'
import { runTurn } from '../turn.ts'

export interface RunFlags extends InputFlags {
  format: string
  dir?: string
  data?: string
  url?: string
  endpoint: string[]
  thread?: string
  yes?: boolean
  concurrency?: string
  output?: string
  resume?: boolean
  bail?: boolean
}

export async function runCommand(context: CommandContext, text: string, flags: RunFlags): Promise<void> {
  const agent = nameAgent(context, text, flags.dir)
  const isFile = agent.file !== undefined
  const place = isFile ? { ...flags, dir: dirname(agent.file!) } : flags
  if (isBatch(flags.input)) {
    return (await import('../batch/batch-command.ts')).batchCommand(context, agent, flags.input, { ...flags, ...place })
  }
  refuseBatchFlags(flags)
  const wire = await namedWire(context, flags.format, place.dir)
  // Checked first: a misspelt agent must not create a data folder.
  await checkAgent(context, agent, place)
  const input = await readInput(context, flags)
  const backend = await openBackend(context, { ...place, migrates: true }, isFile)
  if (flags.yes && !backend.isDurable) {
    await backend.close()
    throw new MillraceError('usage', '--yes needs a log to wait for answers in. Remove --data none.')
  }
  const { notice, url, where } = backend
  if (notice !== undefined) context.stderr.write(`${printable(notice)}\n`)
  if (flags.thread !== undefined) {
    const waiting = await waitingRun(backend, await backend.thread(flags.thread))
    if (waiting !== undefined) warnOfEnd(context, waiting)
  }
  const turned = await runTurn(context, backend, {
    agent: agent.id,
    input,
    threadId: flags.thread,
    wire,
    ask: createAsk(context, flags),
    onStart: (id) => context.stderr.write(`${printable(`run ${id}${url === undefined ? '' : ` on ${url}`}`)}\n`),
  })
  const code = reportRun(context, { ...turned, where })
  await backend.close()
  await leave(context, code)
}

/** The flags that only a batch has. */
function refuseBatchFlags(flags: RunFlags): void {
  const flag = (['concurrency', 'output', 'resume', 'bail'] as const).find((each) => flags[each] !== undefined)
  if (flag === undefined) return
  throw new MillraceError('usage', `--${flag} is for batches: pass --input with a .jsonl file, one input per line.`)
}
