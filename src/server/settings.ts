/** Where the server listens and what it keeps runs in: what the command line says, else the config, else the defaults. */
import type { Config } from '../library/config.ts'

export interface Settings {
  port: number
  host: string
  data: string
  logFiles: boolean
}

export function settingsOf({ server = {}, record = {} }: Config, given: Partial<Settings>): Settings {
  return {
    port: given.port ?? server.port ?? 3000,
    host: given.host ?? server.host ?? '127.0.0.1',
    data: given.data ?? record.data ?? '.millrace',
    logFiles: given.logFiles ?? record.logFiles ?? false,
  }
}
