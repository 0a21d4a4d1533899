/** `millrace reindex`: builds the tables over the log again. */
import type { CommandContext } from '../context.ts'
import { databaseIn, refuseSharedStore } from '../connection/folder.ts'
import { sqliteStore } from '../../store/sqlite-store.ts'

export async function reindexCommand(
  context: CommandContext,
  { data, isNamed }: { data: string; isNamed: boolean },
): Promise<void> {
  if (!isNamed) await refuseSharedStore(context, 'which has no tables', 'There is nothing to build again.')
  const store = sqliteStore(databaseIn(context, data), { migration: false })
  const { stderr } = context
  let shown = ''
  const tell = (done: number, of: number) => {
    const text = `${done} of ${of} runs`
    if (text === shown) return
    shown = text
    if (stderr.isTTY) stderr.write(`\r\u001b[K${text}`)
  }
  try {
    await store.records!.reindex(tell)
  } finally {
    await store.close()
  }
  stderr.write(`${stderr.isTTY ? '\r\u001b[K' : ''}${shown.replace(/ of.*/u, '')} runs are indexed\n`)
}
