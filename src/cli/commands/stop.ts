/** `millrace stop`: stops a run. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded } from '../../part/log.ts'
import { openConnection, type ConnectionFlags, findRun } from '../connection.ts'
import { printable } from '../terminal/output.ts'
import { addConnectionOptions, examples, runAbout } from './options.ts'

export function addStopCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('stop')
    .summary('Stop a run')
    .description('Stop a run on the server. To stop "millrace run", press Ctrl-C there.')
    .argument('<run>', runAbout)
    .addHelpText('after', examples('millrace stop run_1a2b3c'))
    .action((run: string, flags: ConnectionFlags) => stopRun(context, run, flags))
  addConnectionOptions(command)
}

async function stopRun(context: CommandContext, text: string, where: ConnectionFlags): Promise<void> {
  const connection = await openConnection(context, where)
  try {
    const { stop } = connection
    const run = await findRun(connection, text)
    const { id, status } = run
    if (hasEnded(status)) {
      context.stderr.write(printable(`${id} has already ended (${status})\n`))
      return
    }
    if (stop === undefined) {
      const isOrphan = status === 'suspended' || (await connection.orphanOutcome(run)) !== undefined
      const why = isOrphan
        ? 'No process is running it; start millrace serve first.'
        : 'Another millrace command runs it: press Ctrl-C there.'
      throw new MillraceError('usage', `Cannot stop ${id}: no server is running on ${where.data}. ${why}`)
    }
    await stop(id)
    context.stderr.write(printable(`stopping ${id}\n`))
  } finally {
    await connection.close()
  }
}
