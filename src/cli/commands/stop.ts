import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { hasEnded } from '../../part/log.ts'
import { openAccess, type Where } from '../access.ts'
import { findRun } from '../find-run.ts'
import { printable } from '../printable.ts'

export async function stopCommand(context: CommandContext, text: string, where: Where): Promise<void> {
  const access = await openAccess(context, where)
  try {
    const { stop } = access
    const run = await findRun(access, text)
    const { id, status } = run
    if (hasEnded(status)) {
      context.stderr.write(printable(`${id} has already ended (${status})\n`))
      return
    }
    if (stop === undefined) {
      const isOrphan = status === 'suspended' || (await access.fate(run)) !== undefined
      const why = isOrphan
        ? 'No process is running it; start millrace serve first.'
        : 'Another millrace command runs it: press Ctrl-C there.'
      throw new MillraceError('usage', `Cannot stop ${id}: no server is running on ${where.data}. ${why}`)
    }
    await stop(id)
    context.stderr.write(printable(`stopping ${id}\n`))
  } finally {
    await access.close()
  }
}
