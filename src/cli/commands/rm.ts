/** `millrace rm`: deletes runs and conversations, through the live server or in the database. */
import { createInterface } from 'node:readline/promises'
import { setImmediate as turn } from 'node:timers/promises'
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { deleteRun, deleteThread, type Deleted } from '../../record/delete.ts'
import { openForUpkeep } from '../upkeep-store.ts'
import { forStream, printable } from '../printable.ts'
import { placeOf, type Where } from '../where.ts'
import { createRequest } from '../remote-request.ts'

interface RemoveFlags extends Where {
  yes?: boolean
  json?: boolean
}

interface Remover {
  run(id: string): Promise<Deleted>
  thread(id: string): Promise<Deleted>
  close(): Promise<void>
}

export async function removeCommand(context: CommandContext, targets: string[], flags: RemoveFlags): Promise<void> {
  if (flags.yes !== true && !(await agreed(context, targets))) return
  const remover = await openRemover(context, flags)
  const deleted: string[] = []
  try {
    for (const target of targets) deleted.push(...(await remove(remover, target)))
  } finally {
    await remover.close()
    if (flags.json === true) context.stdout.write(`${forStream(JSON.stringify({ deleted }), context.stdout)}\n`)
    else if (deleted.length > 0)
      context.stderr.write(
        printable(`deleted ${deleted.length === 1 ? `run ${deleted[0]}` : `${deleted.length} runs`}\n`),
      )
  }
}

async function agreed(context: CommandContext, targets: string[]): Promise<boolean> {
  if (!context.stdin.isTTY) throw new MillraceError('usage', 'What is deleted cannot be brought back. Add --yes.')
  const lines = createInterface({ input: context.stdin, output: context.stderr })
  const answer = await lines.question(`Delete ${targets.join(', ')}? This cannot be undone. [y/N] `)
  lines.close()
  return /^y(?:es)?$/iu.test(answer.trim())
}

async function remove(remover: Remover, target: string): Promise<string[]> {
  try {
    return (await remover.run(target)).deleted
  } catch (error) {
    if (codeOf(error) !== 'unknown-run') throw error
  }
  try {
    return (await remover.thread(target)).deleted
  } catch (error) {
    if (codeOf(error) !== 'unknown-thread') throw error
    throw new MillraceError(
      'unknown-run',
      `There is no run and no thread ${target}. millrace ps and millrace threads list them.`,
    )
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof MillraceError ? error.code : undefined
}

async function openRemover(context: CommandContext, where: Where): Promise<Remover> {
  const place = await placeOf(context, where)
  if (place.type === 'server') {
    const { server } = place
    const request = createRequest(server.url, server)
    const ask = async (path: string, id: string) =>
      (await (await request(`${path}/${encodeURIComponent(id)}`, { method: 'DELETE' })).json()) as Deleted
    return { run: (id) => ask('/api/runs', id), thread: (id) => ask('/api/threads', id), close: async () => undefined }
  }
  const store = await openForUpkeep(context, place)
  return {
    run: (id) => deleteRun(store, id, { rest: turn }),
    thread: (id) => deleteThread(store, id, { rest: turn }),
    close: () => store.close(),
  }
}
