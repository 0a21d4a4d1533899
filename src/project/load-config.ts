/** Finds and imports the config file beside the agents. Node strips its types itself. */
import { existsSync, readFileSync } from 'node:fs'
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
    const at = await lineOfFailure(file, error)
    throw new MillraceError('bad-config', `${file}${at} cannot be loaded: ${messageOf(error)}`, { cause: error })
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
    const text = readFileSync(file, 'utf8')
    const lines = messageOf(error).split('\n')
    throw new MillraceError('bad-config', lines.map((line) => withLine(file, text, line)).join('\n'), { cause: error })
  }
}

/** `:3`, where the file cannot be read or throws; empty if nobody knows. Node says no line for a syntax error of JavaScript. */
async function lineOfFailure(file: string, error: unknown): Promise<string> {
  const known = lineIn(error, file)
  if (known !== undefined) return known
  const { stripTypeScriptTypes } = await import('node:module')
  try {
    stripTypeScriptTypes(readFileSync(file, 'utf8'), { sourceUrl: file })
    return ''
  } catch (again) {
    return lineIn(again, file) ?? ''
  }
}

function lineIn(error: unknown, file: string): string | undefined {
  const stack = String((error as { stack?: unknown } | null)?.stack)
  for (const name of [pathToFileURL(file).href, file]) {
    const line = /^:\d+/u.exec(stack.slice(stack.indexOf(name) + name.length))?.[0]
    if (stack.includes(name) && line !== undefined) return line
  }
  return undefined
}

/** A mistake with the line of its key, if the file spells it. */
function withLine(file: string, text: string, mistake: string): string {
  const keys = mistake
    .slice(0, mistake.indexOf(' '))
    .split(/[.[\]"]+/u)
    .filter((key) => key !== '' && !/^\d+$/u.test(key))
  let at = 0
  for (const key of keys) {
    const name = key.replaceAll(/[^\w]/gu, String.raw`\$&`)
    const found = new RegExp(String.raw`(?<=^|[\s{,('"])${name}(?=['"]?\s*[:(,}])`, 'u').exec(text.slice(at))
    if (found === null) return `${file}: ${mistake}`
    at += found.index
  }
  return keys.length === 0 ? `${file}: ${mistake}` : `${file}:${text.slice(0, at).split('\n').length} ${mistake}`
}
