/** `millrace export`: the log of a run as a file. */
import { Option, type Command } from 'commander'
import { createWriteStream, renameSync, rmSync } from 'node:fs'
import { finished } from 'node:stream/promises'
import type { CommandContext } from '../context.ts'
import { feedbackLines, type FeedbackRow } from '../../part/feedback.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import { openConnection, type ConnectionFlags, findRun, recordingOf } from '../connection.ts'
import { forStream, printable, writeOut } from '../terminal/output.ts'
import { addConnectionOptions, examples, runAbout } from './options.ts'

interface ExportFlags extends ConnectionFlags {
  output?: string
  format: 'ndjson' | 'otlp'
  content?: boolean
}

export function addExportCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('export')
    .summary('Write a run to a file')
    .description('Write the log of a run as NDJSON, one entry per line, to a file or to stdout.')
    .argument('<run>', runAbout)
    .addOption(
      new Option('--format <format>', 'The log as NDJSON, or its spans as OTLP/JSON')
        .choices(['ndjson', 'otlp'])
        .default('ndjson'),
    )
    .option('--content', 'With --format otlp: also what was said, and the input and output of tools')
    .option('-o, --output <file>', 'File to write; an existing one is replaced')
    .addHelpText(
      'after',
      examples('millrace export run_1a2b3c -o run.ndjson', 'millrace export run_1a2b3c | jq -c .type'),
    )
    .action((run: string, flags: ExportFlags) => exportRun(context, run, flags))
  addConnectionOptions(command)
}

async function exportRun(context: CommandContext, text: string, flags: ExportFlags): Promise<void> {
  const { output, format, content = false, ...where } = flags
  if (content && format !== 'otlp') throw new MillraceError('usage', '--content needs --format otlp.')
  const connection = await openConnection(context, where)
  try {
    const row = await findRun(connection, text)
    const recording = recordingOf(connection, row.id)
    const lines =
      format === 'otlp'
        ? (await import('../../record/otlp/export-traces.ts')).exportTraces(recording, row.lastSeq, content)
        : withFeedback((await import('../../record/transfer/export.ts')).exportRecording(recording, row.lastSeq), () =>
            connection.feedback(row.id),
          )
    if (output === undefined) for await (const piece of lines) await writeOut(context, forStream(piece, context.stdout))
    else {
      await writeFile(context, output, lines)
      context.stderr.write(printable(`${output}: ${describe(row)}\n`))
    }
  } finally {
    await connection.close()
  }
}

/** Lines of their own behind the log. */
async function* withFeedback(
  lines: AsyncIterable<string>,
  rows: () => Promise<FeedbackRow[]>,
): AsyncGenerator<string, void, void> {
  yield* lines
  const said = feedbackLines(await rows())
  if (said !== '') yield said
}

function describe({ agent, lastSeq, status }: RunRow): string {
  return `${agent}, ${lastSeq} entries, ${status}${hasEnded(status) ? '' : ' (so far)'}`
}

/** The file is there when it is whole. */
async function writeFile(context: CommandContext, file: string, lines: AsyncIterable<string>): Promise<void> {
  const part = context.path(`${file}.part`)
  try {
    const stream = createWriteStream(part, { mode: 0o600 })
    const done = finished(stream)
    // It is awaited below; an error that comes before must not be unhandled.
    done.catch(() => undefined)
    for await (const piece of lines) {
      if (!stream.write(piece))
        await Promise.race([new Promise<void>((resolve) => stream.once('drain', () => resolve())), done])
    }
    stream.end()
    await done
    renameSync(part, context.path(file))
  } catch (error) {
    rmSync(part, { force: true })
    if (error instanceof MillraceError) throw error
    throw new MillraceError('unwritable', `${file} cannot be written: ${messageOf(error)}`, { cause: error })
  }
}
