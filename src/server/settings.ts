/** Address, data folder and store of the server: from the command line, then the environment, then the config, then the defaults. */
import { MillraceError } from '../part/error.ts'
import type { Config, OpenAiConfig } from '../project/config.ts'
import type { Env } from '../project/registry.ts'
import { storeUrlOf } from '../project/open-store.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { policyOf } from '../record/policy.ts'
import type { McpOptions } from './mcp/settings.ts'

export interface Settings {
  port: number
  host: string
  data: string
  /** The URL of a shared store; undefined: the log is in the data folder. */
  store: string | undefined
  logFiles: boolean
}

export function settingsOf({ server = {}, record = {} }: Config, given: Partial<Settings>, env: Env = {}): Settings {
  return {
    port: given.port ?? server.port ?? 3000,
    host: given.host ?? server.host ?? '127.0.0.1',
    store: storeUrlOf(record, given.store, env),
    data: given.data ?? record.data ?? '.millrace',
    logFiles: given.logFiles ?? record.logFiles ?? false,
  }
}

const limit = 'STREAM_TOOL_OUTPUT_MAX_CHARS'

/** The settings of the config; the environment overrides them. Throws `bad-config`. */
export function openAiSettingsOf({ server = {} }: Config, env: Env): OpenAiConfig {
  const said = env[limit]
  if (said === undefined || said === '') return { ...server.openai }
  const chars = Number(said)
  if (/^\d+$/u.test(said) && Number.isSafeInteger(chars)) return { ...server.openai, streamToolOutputMaxChars: chars }
  throw new MillraceError('bad-config', `${limit} must be a whole number of characters, not "${said.slice(0, 60)}".`)
}

/** `isKept`: runs outlive the process, so they are deleted by their age. */
export function mcpSettingsOf(
  { server = {}, record }: Config,
  { isShared, isKept }: { isShared: boolean; isKept: boolean },
): false | McpOptions {
  if (server.mcp === false) return false
  const { maxAge } = policyOf(record, { shared: isShared })
  return omitUndefined({
    ...server.mcp,
    keepsRunsMs: isKept ? maxAge : undefined,
    publicUrl: server.publicUrl,
    issuer: server.access?.jwt?.issuer,
  })
}
