/** `millrace parse`: the output of a CLI agent as parts, while it is written. */
import type { CommandContext } from '../context.ts'
import { toRecorded } from '../../part/entry.ts'
import { fromErrorValue, MillraceError } from '../../part/error.ts'
import type { ParseFlags } from '../commands/parse.ts'
import { createCliReader } from '../../ingest/cli-parser.ts'
import type { CliExit } from '../../ingest/outcome.ts'
import type { CliReader } from '../../ingest/transcript.ts'
import { forStream, writeOut } from '../terminal/output.ts'
import { openSource, readSource } from './source.ts'

const usage =
  'Pass a file, or pipe the output of a CLI agent: claude -p "…" --output-format stream-json --verbose | millrace parse'

export async function parseOutput(
  context: CommandContext,
  file: string | undefined,
  { from }: ParseFlags,
): Promise<void> {
  const source = openSource(context, file, usage)
  let lines: string[] = []
  let reader: CliReader | undefined
  let exit: CliExit | undefined
  // Ctrl-C ends the CLI as well: its output so far gets an end.
  const stop = () => {
    exit = { code: null, signal: 'SIGINT' }
    source.stream.destroy()
  }
  context.events.once('SIGINT', stop)
  const write = async () => {
    if (lines.length === 0) return
    const text = lines.join('')
    lines = []
    await writeOut(context, text)
  }
  try {
    for await (const { format, chunk } of readSource(source, from)) {
      if (format === 'ndjson') throw new MillraceError('unknown-format', isLog)
      reader ??= createCliReader(format, {
        onPart: (part) => lines.push(`${forStream(JSON.stringify(toRecorded(part)), context.stdout)}\n`),
      })
      reader.feed(chunk)
      if (reader.refusal !== undefined) throw fromErrorValue(reader.refusal)
      await write()
    }
  } catch (error) {
    if (exit === undefined) throw error
  } finally {
    context.events.off('SIGINT', stop)
  }
  reader?.end(exit)
  if (reader?.refusal !== undefined) throw fromErrorValue(reader.refusal)
  await write()
  if (exit !== undefined) context.exitCode = 130
}

const isLog = 'This is a log of Millrace: its lines are parts already. To keep it as a run, use millrace import.'
