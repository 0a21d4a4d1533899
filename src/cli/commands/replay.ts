/** `millrace replay`: a recorded run on stdout, in the recorded rhythm or step by step. */
import { Option, type Command } from 'commander'
import { createInterface } from 'node:readline'
import type { CommandContext } from '../context.ts'
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded } from '../../part/log.ts'
import { openConnection, type ConnectionFlags, findRun, recordingOf } from '../connection.ts'
import { forStream, printable, writeOut } from '../terminal/output.ts'
import { addConnectionOptions, examples, formatOption, namedWire, runAbout } from './options.ts'

interface ReplayFlags extends ConnectionFlags {
  speed: string
  format: string
  from?: string
  to?: string
  step?: boolean
  dir?: string
}

export function addReplayCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('replay')
    .summary('Play a recorded run again')
    .description('Print a recorded run as its clients got it, in the recorded rhythm.')
    .argument('<run>', runAbout)
    .addOption(new Option('--speed <n>', '1 as recorded, 10 ten times as fast, max at once').default('1', '1'))
    .addOption(formatOption())
    .option('--from <seq>', 'Begin with this entry')
    .option('--to <seq>', 'End after this entry')
    .option('--step', 'Print the next entry each time you press Enter')
    .option('--dir <dir>', 'Folder of agents whose config adds wires (default: "agents")')
    .addHelpText(
      'after',
      `
No pause is longer than 5 seconds. Of a run that goes on, the entries recorded so
far are played. Exits 1 if the recorded answer is incomplete: plain text has no
other word for it.
${examples('millrace replay run_1a2b3c', 'millrace replay run_1a2b3c --speed max --format ui', 'millrace replay run_1a2b3c --step --format parts')}`,
    )
    .action((run: string, flags: ReplayFlags) => replayRun(context, run, flags))
  addConnectionOptions(command)
}

async function replayRun(context: CommandContext, text: string, flags: ReplayFlags): Promise<void> {
  const { checkReplay, replayRecording } = await import('../../record/replay/replay.ts')
  const wire = await namedWire(context, flags.format, flags.dir)
  const speed = flags.speed === 'max' ? Infinity : Number(flags.speed)
  const connection = await openConnection(context, flags)
  const enter = flags.step === true ? createEnter(context) : undefined
  try {
    const row = await findRun(connection, text)
    const range = { speed, from: toSeq(flags.from, 'from') ?? 1, to: toSeq(flags.to, 'to') ?? row.lastSeq }
    try {
      checkReplay(range, row.lastSeq)
    } catch (error) {
      throw new MillraceError('usage', (error as MillraceError).message.replace(/^"(\w+)"/u, '--$1'))
    }
    const step = enter?.step
    const pieces = replayRecording(recordingOf(connection, row.id), { wire, ...range, ...(step && { step }) })
    let last = '\n'
    try {
      for await (const piece of pieces) {
        await writeOut(context, forStream(piece, context.stdout))
        last = piece
      }
    } finally {
      // The shell's prompt starts on its own line.
      if (context.stdout.isTTY && !last.endsWith('\n')) context.stdout.write('\n')
    }
    if (flags.to === undefined && !hasEnded(row.status)) {
      context.stderr.write(printable(`${row.id} is ${row.status}: this is what is recorded so far\n`))
    }
  } finally {
    enter?.close()
    await connection.close()
  }
}

function toSeq(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d+$/u.test(text)) throw new MillraceError('usage', `--${name} must be a whole number, not "${text}".`)
  return Number(text)
}

/** Waits for Enter before each entry, and names the entry on stderr. */
function createEnter(context: CommandContext) {
  const lines = createInterface({ input: context.stdin })
  const pressed = lines[Symbol.asyncIterator]()
  context.stderr.write('Enter: the next entry. Ctrl-D: end.\n')
  return {
    async step({ seq, type, step }: Entry): Promise<boolean> {
      if ((await pressed.next()).done) return false
      context.stderr.write(printable(`${seq} ${type}${step === '' ? '' : ` ${step}`}\n`))
      return true
    },
    close: () => lines.close(),
  }
}
