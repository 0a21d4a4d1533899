/** `millrace replay`: a recorded run on stdout, in the recorded rhythm or step by step. */
import { createInterface } from 'node:readline'
import type { CommandContext } from '../context.ts'
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded } from '../../part/log.ts'
import { checkReplay, replayRecording } from '../../record/replay/replay.ts'
import { openConnection, type ConnectionFlags, findRun, recordingOf } from '../connection.ts'
import { namedWire } from '../named-wire.ts'
import { forStream, printable, writeOut } from '../terminal/output.ts'

export interface ReplayFlags extends ConnectionFlags {
  speed: string
  format: string
  from?: string
  to?: string
  step?: boolean
  dir?: string
}

export async function replayCommand(context: CommandContext, text: string, flags: ReplayFlags): Promise<void> {
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
