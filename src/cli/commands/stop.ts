import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded } from '../../part/log.ts'
import { openConnection, type ConnectionFlags, findRun } from '../connection.ts'
import { printable } from '../terminal/output.ts'

export async function stopCommand(context: CommandContext, text: string, where: ConnectionFlags): Promise<void> {
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
