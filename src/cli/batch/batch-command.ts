/** `millrace run --input cases.jsonl`: checks everything before the first run starts. */
import { leave, type CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import type { NamedAgent } from '../agent-file.ts'
import { checkAgent, openBackend } from '../backend.ts'
import type { RunFlags } from '../commands/run.ts'
import { printable } from '../printable.ts'
import { readBatch } from './batch-input.ts'
import { openSink } from './batch-results.ts'
import { runBatch } from './run-batch.ts'

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
  const backend = await openBackend(context, flags, agent.file !== undefined)
  if (backend.notice !== undefined) context.stderr.write(`${printable(backend.notice)}\n`)
  const code = await runBatch(context, backend, { agent: agent.id, lines, sink, concurrency, bail, yes })
  await backend.close()
  await leave(context, code)
}
