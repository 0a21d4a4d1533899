/** `millrace run`: one run, or a batch. Streams the answer to stdout, everything else to stderr. */
import { dirname } from 'node:path'
import { leave, type CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { nameAgent } from '../paths.ts'
import { createAsk, readThread, waitingRun, warnOfEnd } from './requests.ts'
import { namedWire } from '../commands/options.ts'
import { checkAgent, openAgents } from '../connection/agents.ts'
import { isBatch, readInput } from './input.ts'
import { reportRun, runTurn } from './follow.ts'
import { printable } from '../terminal/output.ts'
import type { RunFlags } from '../commands/run.ts'

export async function runAgent(context: CommandContext, text: string, flags: RunFlags): Promise<void> {
  const agent = nameAgent(context, text, flags.dir)
  const isFile = agent.file !== undefined
  const agentFlags = isFile ? { ...flags, dir: dirname(agent.file!) } : flags
  if (isBatch(flags.input)) {
    return (await import('../batch/batch.ts')).batchCommand(context, agent, flags.input, { ...flags, ...agentFlags })
  }
  refuseBatchFlags(flags)
  const wire = await namedWire(context, flags.format, agentFlags.dir)
  // Checked first: a misspelt agent must not create a data folder.
  await checkAgent(context, agent, agentFlags)
  const input = await readInput(context, flags)
  const connection = await openAgents(context, { ...agentFlags, migrates: true }, isFile)
  if (flags.yes && !connection.isDurable) {
    await connection.close()
    throw new MillraceError('usage', '--yes needs a log to wait for answers in. Remove --data none.')
  }
  const { notice, url, flags: printed } = connection
  if (notice !== undefined) context.stderr.write(`${printable(notice)}\n`)
  if (flags.thread !== undefined) {
    const waiting = await waitingRun(connection, await readThread(connection, flags.thread))
    if (waiting !== undefined) warnOfEnd(context, waiting)
  }
  const result = await runTurn(context, connection, {
    agent: agent.id,
    input,
    threadId: flags.thread,
    wire,
    ask: createAsk(context, { ...flags, url }),
    onStart: (id) => context.stderr.write(`${printable(`run ${id}${url === undefined ? '' : ` on ${url}`}`)}\n`),
  })
  const code = reportRun(context, { ...result, where: printed })
  await connection.close()
  await leave(context, code)
}

/** The flags that only a batch has. */
function refuseBatchFlags(flags: RunFlags): void {
  const flag = (['concurrency', 'output', 'resume', 'bail'] as const).find((each) => flags[each] !== undefined)
  if (flag === undefined) return
  throw new MillraceError('usage', `--${flag} is for batches: pass --input with a .jsonl file, one input per line.`)
}
