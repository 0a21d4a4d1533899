/** Where the runs of a command are: one rule for all commands. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandContext } from './context.ts'
import { MillraceError } from '../part/error.ts'
import { checkData } from './folders.ts'
import { findServer, namedServer, type LiveServer } from './live-server.ts'

/** The flags of every command about runs. */
export interface Where {
  data: string
  /** The server of `--url`. */
  url?: string
  /** The shared store of `--store`. */
  store?: string
  /** Folder of agents, whose config may name the store; default `agents`. */
  dir?: string
}

export type Place =
  | { type: 'server'; server: LiveServer }
  /** A store that servers share. */
  | { type: 'store'; url: string }
  /** A data folder that no live server uses. */
  | { type: 'folder'; data: string }

/** `--url`, then a shared store, then the live server of the data folder, then the folder itself. */
export async function placeOf(context: CommandContext, where: Where): Promise<Place> {
  if (where.url !== undefined) return { type: 'server', server: namedServer(context, where.url) }
  const url = await sharedStore(context, where)
  if (url !== undefined) return { type: 'store', url }
  const { data } = where
  checkData(context, data)
  const server = await findServer(context, data)
  return server === undefined ? { type: 'folder', data } : { type: 'server', server }
}

/** The URL of `--store`, of `MILLRACE_STORE`, or of `record.store` in the config. Throws `bad-store`. */
export async function sharedStore(
  context: CommandContext,
  { store, dir = 'agents' }: Pick<Where, 'store' | 'dir'>,
): Promise<string | undefined> {
  // Most projects have none, and must not wait for what finds one.
  if (!store && !context.env['MILLRACE_STORE'] && !configNamesStore(context, dir)) return undefined
  const { storeUrlOf } = await import('../project/open-store.ts')
  const given = storeUrlOf({}, store, context.env)
  if (given !== undefined || store || context.env['MILLRACE_STORE']) return given
  const { loadConfig } = await import('../project/load-config.ts')
  return storeUrlOf((await loadConfig(context.path(dir))).record ?? {}, undefined, {})
}

/** Whether the text of a config has the word. To load a config is to run it. */
function configNamesStore(context: CommandContext, dir: string): boolean {
  const file = ['ts', 'mts', 'js', 'mjs']
    .map((end) => join(dir, `millrace.config.${end}`))
    .find((path) => existsSync(context.path(path)))
  return file !== undefined && /\bstore\b/u.test(readFileSync(context.path(file), 'utf8'))
}

/** Throws `usage` if the runs are in a shared store. `why` says what that store does not have; `cure` what to do. */
export async function refuseStore(context: CommandContext, why: string, cure: string): Promise<void> {
  if ((await sharedStore(context, {})) === undefined) return
  const other = 'For those of a data folder, name it with --data.'
  throw new MillraceError(
    'usage',
    `The runs are in a shared store (MILLRACE_STORE or record.store), ${why}. ${cure} ${other}`,
  )
}

/** The database of a data folder. Throws `usage` if there is none. */
export function databaseIn(context: CommandContext, data: string): string {
  checkData(context, data)
  const file = join(data, 'millrace.db')
  if (existsSync(context.path(file))) return context.path(file)
  const why =
    data === 'none'
      ? 'Runs with --data none are not kept.'
      : 'Start a run with millrace run or millrace serve, or name another data folder with --data.'
  throw new MillraceError('usage', `No runs found in ${data}. ${why}`)
}

/** The flags that lead to the same runs, to append to a printed command; often none. A store with a password is not repeated. */
export function whereFlags({ data, url, store }: Where): string {
  const named = store === undefined || store.includes('@') ? '' : ` --store ${store}`
  return `${data === '.millrace' ? '' : ` --data ${data}`}${named}${url === undefined ? '' : ` --url ${url}`}`
}
