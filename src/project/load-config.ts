/** Finds and imports the config file beside the agents. Node strips its types itself. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { messageOf, MillraceError } from '../part/error.ts'
import { checkConfig } from './check-config.ts'
import type { Config } from './config.ts'
import { awaitPacks, unpack } from './packs.ts'

/** The first that exists is used. */
export const configNames = ['millrace.config.ts', 'millrace.config.mts', 'millrace.config.js', 'millrace.config.mjs']

/** The config in the agents folder with its packs loaded, or an empty one. Throws `bad-config` naming the file. */
export async function loadConfig(dir: string): Promise<Config> {
  const file = configNames.map((name) => resolve(join(dir, name))).find((path) => existsSync(path))
  if (file === undefined) return {}
  let module: { default?: unknown }
  try {
    module = (await import(pathToFileURL(file).href)) as { default?: unknown }
  } catch (error) {
    throw new MillraceError('bad-config', `${file} cannot be loaded: ${messageOf(error)}`, { cause: error })
  }
  const config = module.default
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new MillraceError('bad-config', `${file} must have a default export made with defineConfig({ … }).`)
  }
  try {
    checkConfig(config)
    const awaited = await awaitPacks(config)
    unpack(awaited)
    return awaited
  } catch (error) {
    throw new MillraceError('bad-config', `${file}: ${messageOf(error)}`, { cause: error })
  }
}
