import { MillraceError } from '../../part/error.ts'
import { openAccess } from '../access.ts'

export async function stopCommand(run: string, { data }: { data: string }): Promise<void> {
  const access = await openAccess(data)
  const { stop } = access
  const status = stop === undefined ? undefined : await access.status(run)
  await access.close()
  if (stop === undefined) {
    throw new MillraceError('usage', `No server is running on ${data}, so nothing is running that could be stopped.`)
  }
  if (status !== 'running' && status !== 'suspended') {
    process.stderr.write(`${run} has ended already (${status})\n`)
    return
  }
  await stop(run)
  process.stderr.write(`stopping ${run}\n`)
}
