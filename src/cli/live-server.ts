/** Finds the live server of a data folder by `<data>/server.json` and its lock, or uses the one of `--url`. */
import type { CommandContext } from './context.ts'
import { checkKey } from '../part/check-key.ts'
import { MillraceError } from '../part/error.ts'
import { isHeld } from '../server/data-lock.ts'
import { readServerFile } from '../server/server-file.ts'
import { isOwnAddress, reachableUrl, type RemoteOptions } from './remote-request.ts'

export interface LiveServer extends RemoteOptions {
  url: string
  /** The real path of its folder of agents. */
  dir?: string | undefined
  /** Hashes of its endpoints. */
  endpoints?: readonly string[] | undefined
}

/** Undefined if no server runs on the data folder, or it does not answer. */
export async function findServer(context: CommandContext, data: string): Promise<LiveServer | undefined> {
  // Only the lock proves that a server runs: a crash may have left the file behind, or anyone may have written it.
  const file = isHeld(context.path(data), 'server') ? readServerFile(context.path(data)) : undefined
  if (file?.url === undefined || !URL.canParse(file.url)) return undefined
  const url = reachableUrl(file.url)
  if (!(await answers(url))) return undefined
  const isOwn = isOwnAddress(url)
  return { url, dir: file.dir, endpoints: file.endpoints, key: isOwn ? apiKey(context) : undefined, isKeyKept: !isOwn }
}

/** `--url`: trusted with the key, on any host. Throws `usage` if it is not a URL. */
export function namedServer(context: CommandContext, text: string): LiveServer {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new MillraceError('usage', `--url must be a URL such as http://localhost:3000, not "${text}".`)
  }
  return { url: text.replace(/\/+$/u, ''), key: apiKey(context) }
}

function apiKey(context: CommandContext): string | undefined {
  const key = context.env['MILLRACE_API_KEY'] || undefined
  if (key !== undefined) checkKey(key, 'MILLRACE_API_KEY')
  return key
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5000) })).ok
  } catch {
    return false
  }
}
