/** Imports runs into a data folder that no live server uses, or into a shared store. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readUsed } from '../../engine/cli/used-before.ts'
import { createCleaner, createRedactor } from '../../fold/redact.ts'
import { MillraceError } from '../../part/error.ts'
import type { Store } from '../../part/log.ts'
import { openStore } from '../../project/open-store.ts'
import { secretValues } from '../../project/secrets.ts'
import { createImport, type Import } from '../../record/transfer/import.ts'
import { lockData } from '../../server/data-lock.ts'
import type { ImportedRun, ImportResult, RunImporter } from '../connection.ts'
import type { CommandContext } from '../context.ts'
import { createRequest, findServer, requestImporter } from './server.ts'
import { openShared } from './shared-store.ts'

export function folderImporter(context: CommandContext, data: string): RunImporter {
  const folder = context.path(data)
  const open = () => openStore({ data: folder, keepsVersion: true })
  return {
    async find(id, withUsage) {
      // A lookup must not create a data folder.
      if (!existsSync(join(folder, 'millrace.db'))) return {}
      const release = lockData(folder, 'shared')
      // A server has locked the folder meanwhile: the import asks that server.
      if (release === undefined) return {}
      try {
        return await findIn(await open(), id, withUsage)
      } finally {
        release()
      }
    },
    import: (lines, name) =>
      withImport(context, lines, name, async (importing) => {
        const release = lockData(folder, 'shared')
        if (release === undefined) {
          const server = await findServer(context, data)
          if (server !== undefined) return requestImporter(createRequest(server)).import(lines, name)
          const cure = 'Stop it, or import into another folder with --data.'
          throw new MillraceError('data-in-use', `A server uses the data folder ${data} but does not answer. ${cure}`)
        }
        try {
          return await finish(importing, await open())
        } finally {
          release()
        }
      }),
  }
}

export function sharedStoreImporter(context: CommandContext, url: string): RunImporter {
  return {
    find: async (id, withUsage) => findIn(await openShared(context, url), id, withUsage),
    import: (lines, name) =>
      withImport(context, lines, name, async (importing) => finish(importing, await openShared(context, url))),
  }
}

/** Closes the store. */
async function findIn(store: Store, id: string, withUsage: boolean): Promise<ImportedRun> {
  try {
    const row = await store.runs.get(id)
    return { row, ...(withUsage && row === undefined && { used: await readUsed(store, {}) }) }
  } finally {
    await store.close()
  }
}

/** Reads and checks all lines before `store` runs: refused input must not create a data folder. */
async function withImport(
  context: CommandContext,
  lines: readonly Uint8Array[],
  name: string,
  store: (importing: Import) => Promise<ImportResult>,
): Promise<ImportResult> {
  const secrets = secretValues({}, context.env)
  const importing = createImport({ name, redactor: () => createRedactor(secrets), clean: createCleaner(secrets) })
  try {
    for (const piece of lines) await importing.feed(piece)
    importing.end()
    return await store(importing)
  } finally {
    await importing.close()
  }
}

/** Closes the store. */
async function finish(importing: Import, store: Store): Promise<ImportResult> {
  try {
    const { isNew, row } = await importing.finish(store)
    return { ...row, isNew }
  } finally {
    await store.close()
  }
}
