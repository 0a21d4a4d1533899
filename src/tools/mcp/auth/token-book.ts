/**
 * The tokens of one person for one MCP server, in the store: sealed, and in versions. Of several processes that want to renew a version, one does it;
 * the others wait for the next one.
 *
 * A version is a message `token:<n>` of an inbox, so the first to write it wins. `renew:<n>:<k>` says that somebody is at it, and counts for half a
 * minute; `failed:<n>:<k>` that it was in vain. Every four weeks there is a new inbox, so that a reader never reads more than that.
 */
import { pause } from '../../../async/pause.ts'
import { parseJson } from '../../../part/json.ts'
import type { InboxMessage, Log } from '../../../part/log.ts'
import { ownValue } from '../../../part/own-value.ts'
import type { Seal } from '../../../part/sealed-text.ts'
import type { IssuedToken } from './token-source.ts'

/** JSON has no Infinity: absent means that it does not end by itself. */
export interface KeptTokens extends Pick<IssuedToken, 'token'> {
  renewAt?: number
  endsAt?: number
  refreshToken?: string
  /** Who has issued them, and for which client: they are renewed there and nowhere else. */
  issuer: string
  clientId: string
  clientSecret?: string
}

export interface Version {
  n: number
  period: number
  /** Absent: signed out, or ended. */
  kept?: KeptTokens
}

export interface TokenBook {
  latest(): Promise<Version | undefined>
  /** Whether there is none after this one. Reads only what is new. */
  isLatest(version: Version): Promise<boolean>
  /** The next version. Whoever comes later wins: a person has signed in, or out. */
  replace(kept: KeptTokens | undefined): Promise<Version>
  /** The version after this one, which `work` makes once for all processes. Rejects as `work` does. */
  renew(version: Version, work: (kept: KeptTokens) => Promise<KeptTokens | undefined>): Promise<Version>
}

const periodMs = 28 * 86_400_000
/** How many periods back a version is looked for: after half a year without use, a person signs in again. */
const mostPeriods = 7
const leaseMs = 30_000

export interface BookOptions {
  log: Pick<Log, 'post' | 'inbox'>
  seal: Seal
  /** Epoch ms, by the clock of the store. */
  now: () => number
}

/** `name`: whose tokens for what; only letters that an inbox may have. */
export function openTokenBook(name: string, { log, seal, now }: BookOptions): TokenBook {
  // Redis keeps inboxes with this prefix.
  const inboxOf = (period: number) => `access:mcp:${name}:${period}`
  const current = () => Math.floor(now() / periodMs)

  async function messagesOf(period: number): Promise<InboxMessage[]> {
    const messages: InboxMessage[] = []
    for await (const message of log.inbox(inboxOf(period))) messages.push(message)
    return messages
  }

  async function latest(): Promise<Version | undefined> {
    const first = current()
    for (let period = first; period > first - mostPeriods; period--) {
      const newest = newestOf(await messagesOf(period))
      if (newest !== undefined) return opened(period, newest)
    }
    return undefined
  }

  async function opened(period: number, { n, message }: { n: number; message: unknown }): Promise<Version> {
    const sealed = ownValue(message as Record<string, unknown>, 'sealed')
    const text = typeof sealed === 'string' ? await seal.open(sealed) : undefined
    const found = text === undefined ? undefined : (parseJson(text) as { name: string; kept: KeptTokens })
    // The text of another person would not do.
    return { n, period, ...(found?.name === name && { kept: found.kept }) }
  }

  /** How far the inbox of a period was read, and the newest version there. */
  let seen = { period: -1, position: 0, newest: 0 }

  async function isLatest({ n, period }: Version): Promise<boolean> {
    if (period !== current()) return (await latest())?.n === n
    if (seen.period !== period) seen = { period, position: 0, newest: 0 }
    const own = seen
    for await (const message of log.inbox(inboxOf(period), { after: own.position })) {
      own.position = Math.max(own.position, message.n)
      own.newest = Math.max(own.newest, newestOf([message])?.n ?? 0)
    }
    return own.newest <= n
  }

  /** Undefined: another process has written this version. */
  async function write(n: number, kept: KeptTokens | undefined): Promise<Version | undefined> {
    const message = kept === undefined ? {} : { sealed: await seal.seal(JSON.stringify({ name, kept })) }
    const period = current()
    const { first } = await log.post(inboxOf(period), `token:${n}`, message)
    return first ? { n, period, ...(kept && { kept }) } : undefined
  }

  async function replace(kept: KeptTokens | undefined): Promise<Version> {
    for (;;) {
      const before = await latest()
      const written = await write((before?.n ?? 0) + 1, kept)
      if (written !== undefined) return tellOf(before, written)
    }
  }

  /** Those who wait read the inbox of the version before. */
  async function tellOf(before: Version | undefined, written: Version): Promise<Version> {
    if (before !== undefined && before.period !== written.period) {
      await log.post(inboxOf(before.period), `moved:${before.n}`, {})
    }
    return written
  }

  async function renew(version: Version, work: (kept: KeptTokens) => Promise<KeptTokens | undefined>) {
    const { n, period, kept } = version
    const inbox = inboxOf(period)
    for (;;) {
      // First what is waited for, or what comes in between would be missed.
      const messages = await messagesOf(period)
      const newest = await latest()
      if (newest !== undefined && newest.n > n) return newest
      const { k, at, hasFailed } = lastClaim(messages, n)
      const left = at + leaseMs - now()
      if (!hasFailed && left > 0) {
        await nextMessage(inbox, messages.at(-1)!.n, left)
        continue
      }
      const { first } = await log.post(inbox, `renew:${n}:${k + 1}`, { at: now() })
      if (!first) continue
      let next: KeptTokens | undefined
      try {
        next = kept && (await work(kept))
      } catch (error) {
        await log.post(inbox, `failed:${n}:${k + 1}`, {})
        throw error
      }
      const written = await write(n + 1, next)
      if (written !== undefined) return tellOf(version, written)
    }
  }

  async function nextMessage(inbox: string, after: number, ms: number): Promise<void> {
    const stop = new AbortController()
    const late = pause(ms, stop.signal, { background: true }).then(() => stop.abort())
    for await (const _ of log.inbox(inbox, { after, signal: stop.signal })) break
    stop.abort()
    await late
  }

  return { latest, isLatest, replace, renew }
}

function newestOf(messages: readonly InboxMessage[]): { n: number; message: unknown } | undefined {
  let newest: { n: number; message: unknown } | undefined
  for (const { key, message } of messages) {
    const n = Number(/^token:(\d{1,12})$/u.exec(key)?.[1])
    if (n > (newest?.n ?? -1)) newest = { n, message }
  }
  return newest
}

/** Who tried to renew a version last. */
function lastClaim(messages: readonly InboxMessage[], n: number): { k: number; at: number; hasFailed: boolean } {
  let last = { k: -1, at: -Infinity, hasFailed: false }
  for (const { key, message } of messages) {
    const [, kind, of, k] = /^(renew|failed):(\d{1,12}):(\d{1,6})$/u.exec(key) ?? []
    if (Number(of) !== n) continue
    if (kind === 'failed') last = { ...last, hasFailed: Number(k) === last.k || last.hasFailed }
    else {
      const at = ownValue(message as Record<string, unknown>, 'at')
      last = { k: Number(k), at: typeof at === 'number' ? at : -Infinity, hasFailed: false }
    }
  }
  return last
}
