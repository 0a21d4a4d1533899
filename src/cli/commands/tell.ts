/** `millrace tell`: a message into a running turn. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { findRun, openConnection, type ConnectionFlags } from '../connection.ts'
import { printable } from '../terminal/output.ts'
import { addConnectionOptions, examples, runAbout } from './options.ts'

interface TellFlags extends ConnectionFlags {
  queue?: boolean
}

export function addTellCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('tell')
    .summary('Send a message into a running turn')
    .description('Send a message to a run that is active. Its model is told it with its next call.')
    .argument('<run>', runAbout)
    .argument('<message>', 'the text')
    .option('--queue', 'give it a run of its own, after this one')
    .addHelpText('after', examples('millrace tell run_1a2b3c "Only the last year, please"'))
    .action((run: string, message: string, flags: TellFlags) => tellRun(context, run, message, flags))
  addConnectionOptions(command)
}

async function tellRun(context: CommandContext, text: string, message: string, flags: TellFlags): Promise<void> {
  const { queue = false, ...where } = flags
  const connection = await openConnection(context, where)
  try {
    const { tell } = connection
    const { id } = await findRun(connection, text)
    if (tell === undefined) {
      const cure = 'Another millrace command runs it, or nobody does: start millrace serve first.'
      throw new MillraceError('usage', `Cannot tell ${id}: no server is running on ${where.data}. ${cure}`)
    }
    const told = await tell(id, { content: message, mode: queue ? 'queue' : 'steer' })
    const how = told.mode === 'queue' ? `gets a run of its own after ${id}` : `goes into ${id}`
    context.stderr.write(printable(`message ${told.id} ${how}\n`))
  } finally {
    await connection.close()
  }
}
