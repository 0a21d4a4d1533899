/**
 * Keys of programs. A key is `mr_` and 256 random bits; the store has its SHA-256 and nothing else of it. Keys are added and revoked by messages that
 * all instances of a store read as they come (the inbox `access:keys`), so a revoked key ends everywhere.
 */
import { hashText, isSameSecret } from '../http/key.ts'
import { MillraceError } from '../../part/error.ts'
import type { Log } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { ownValue } from '../../part/own-value.ts'
import { roles, type Actor, type Principal, type Role } from '../../part/principal.ts'
import { isKeyName, keyNameWords } from '../../project/access-values.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { isObject } from './told-principal.ts'
import { noteKeyNumber } from './key-number.ts'
import { startTimer, type StartTimer } from './timer.ts'

/** The inbox of the store. */
export const keyInbox = 'access:keys'
/** Secret scanners find keys by it. */
export const keyPrefix = 'mr_'

/** A key without its secret. */
export interface StoredKey {
  name: string
  role: Role
  tenant?: string
  /** The only agents that it may use. */
  agents?: string[]
  /** Amounts by the names of `server.quotas`. */
  limits?: Record<string, number>
  /** Epoch ms. */
  createdAt: number
  expiresAt?: number
  revokedAt?: number
  /** Who added it. */
  by?: Actor
}

export interface NewKey {
  name: string
  role: Role
  tenant?: string | undefined
  agents?: string[] | undefined
  limits?: Record<string, number> | undefined
  /** Epoch ms. */
  expiresAt?: number | undefined
}

interface KnownKey extends StoredKey {
  digest: string
  /** How often the name was added before. */
  n: number
}

/** Those that were not revoked come first, by name. */
export async function listKeys(log: Pick<Log, 'inbox'>): Promise<StoredKey[]> {
  const book = createKeyFold()
  for await (const message of log.inbox(keyInbox)) book.apply(message)
  return [...book.keys.values()]
    .toSorted((a, b) => Number(a.revokedAt ?? 0) - Number(b.revokedAt ?? 0) || a.name.localeCompare(b.name))
    .map(({ digest: _digest, n: _n, ...key }) => key)
}

/** Resolves with the secret, which is shown once. Rejects with `key-exists`. */
export async function addKey(
  log: Pick<Log, 'inbox' | 'post'>,
  key: NewKey,
  { now, by }: { now: number; by?: Actor | undefined },
): Promise<string> {
  checkName(key.name)
  const book = createKeyFold()
  for await (const message of log.inbox(keyInbox)) book.apply(message)
  if (book.active(key.name) !== undefined) throw keyExists(key.name)
  return post(log, key, { now, by, n: book.count(key.name) })
}

/** Rejects with `unknown-key`. A second time changes nothing. */
export async function revokeKey(
  log: Pick<Log, 'inbox' | 'post'>,
  name: string,
  { now, by }: { now: number; by?: Actor | undefined },
): Promise<void> {
  const book = createKeyFold()
  for await (const message of log.inbox(keyInbox)) book.apply(message)
  const count = book.count(name)
  if (count === 0) throw unknownKey(name, book.names())
  await log.post(keyInbox, `revoke:${count - 1}:${name}`, omitUndefined({ at: now, by }))
}

/** A new secret for a key; the one before counts no more. */
export async function rotateKey(
  log: Pick<Log, 'inbox' | 'postAll'>,
  name: string,
  { now, by }: { now: number; by?: Actor | undefined },
): Promise<string> {
  const book = createKeyFold()
  for await (const message of log.inbox(keyInbox)) book.apply(message)
  const key = book.active(name)
  if (key === undefined) throw unknownKey(name, book.names())
  const { role, tenant, agents, limits, expiresAt } = key
  const secret = newSecret()
  // One write: a key is never without a secret.
  const [revoked, added] = await log.postAll(keyInbox, [
    { key: `revoke:${key.n}:${name}`, message: omitUndefined({ at: now, by }) },
    {
      key: `add:${key.n + 1}:${name}`,
      message: await storedForm({ name, role, tenant, agents, limits, expiresAt }, secret, { now, by }),
    },
  ])
  if (revoked?.first !== true || added?.first !== true) throw unknownKey(name, book.names())
  return secret
}

async function storedForm(key: NewKey, secret: string, { now, by }: { now: number; by: Actor | undefined }) {
  return omitUndefined({ ...key, digest: await hashText(secret), createdAt: now, by })
}

async function post(
  log: Pick<Log, 'post'>,
  key: NewKey,
  { now, by, n }: { now: number; by: Actor | undefined; n: number },
): Promise<string> {
  const secret = newSecret()
  const stored = await storedForm(key, secret, { now, by })
  const { first } = await log.post(keyInbox, `add:${n}:${key.name}`, stored)
  if (!first) throw keyExists(key.name)
  return secret
}

function checkName(name: string): void {
  if (isKeyName(name)) return
  throw new MillraceError('bad-input', `The name of a key must be ${keyNameWords}.`, { status: 400 })
}

function keyExists(name: string): MillraceError {
  const cure = 'Revoke it first, or rotate it to get a new secret.'
  return new MillraceError('key-exists', `There is a key "${name}" already. ${cure}`, { status: 409 })
}

export function unknownKey(name: string, known: string[]): MillraceError {
  return new MillraceError('unknown-key', `There is no key "${name.slice(0, 64)}"${didYouMean(name, known)}.`, {
    status: 404,
  })
}

/** The principal of a key. */
export function principalOf({ name, role, tenant, agents, expiresAt }: StoredKey): Principal {
  return { id: `key:${name}`, roles: [role], key: name, ...omitUndefined({ tenant, agents, expiresAt }) }
}

function createKeyFold() {
  /** By name and number. */
  const keys = new Map<string, KnownKey>()
  const counts = new Map<string, number>()

  function apply({ key, message }: { key: string; message: unknown }): KnownKey | undefined {
    const [, kind, number, name = ''] = /^(add|revoke):(\d+):(.+)$/u.exec(key) ?? []
    const n = Number(number)
    if (kind === 'add') {
      const added = readKey(name, n, message)
      if (added === undefined) return undefined
      counts.set(name, Math.max(counts.get(name) ?? 0, n + 1))
      keys.set(`${n}:${name}`, added)
      return added
    }
    const known = keys.get(`${n}:${name}`)
    if (known !== undefined) known.revokedAt ??= numberIn(message, 'at') ?? 0
    return known
  }

  return {
    keys,
    apply,
    count: (name: string) => counts.get(name) ?? 0,
    names: () => [...counts.keys()],
    active: (name: string) => [...keys.values()].find((key) => key.name === name && key.revokedAt === undefined),
  }
}

/** Rows of a store are input. */
function readKey(name: string, n: number, message: unknown): KnownKey | undefined {
  if (typeof message !== 'object' || message === null) return undefined
  const of = (key: string) => ownValue(message as Record<string, unknown>, key)
  const digest = of('digest')
  const role = roles.find((each) => each === of('role'))
  if (typeof digest !== 'string' || role === undefined) return undefined
  const [tenant, agents] = [of('tenant'), of('agents')]
  return {
    name,
    n,
    digest,
    role,
    createdAt: numberIn(message, 'createdAt') ?? 0,
    ...omitUndefined({
      tenant: typeof tenant === 'string' ? tenant : undefined,
      agents: Array.isArray(agents) ? agents.filter((each) => typeof each === 'string') : undefined,
      limits: limitsIn(of('limits')),
      expiresAt: numberIn(message, 'expiresAt'),
      by: of('by') as Actor | undefined,
    }),
  }
}

function limitsIn(given: unknown): Record<string, number> | undefined {
  if (!isObject(given)) return undefined
  const amounts = Object.entries(given).filter((each): each is [string, number] => typeof each[1] === 'number')
  return amounts.length === 0 ? undefined : Object.fromEntries(amounts)
}

function numberIn(message: unknown, key: string): number | undefined {
  const value =
    typeof message === 'object' && message !== null ? ownValue(message as Record<string, unknown>, key) : undefined
  return typeof value === 'number' ? value : undefined
}

/** The keys of a store as one instance knows them, live. */
export interface KeyBook {
  /** The principal of a key by the SHA-256 of its secret, unless it was revoked or has expired. */
  find(digest: string, now: number): Principal | undefined
  /**
   * Calls back when the key of this name is revoked or rotated; soon, if it was since `n` (`keyNumberOf`) was the key of this name. Returns a
   * function that stops waiting.
   */
  onRevoked(name: string, end: () => void, n?: number): () => void
  /** Resolves when what was stored before is known. */
  ready: Promise<void>
  close(): void
}

export interface KeyBookOptions {
  onError: (error: unknown) => void
  /** Names that the config has given away: stored keys of these names do not count. */
  taken?: ReadonlySet<string>
  startTimer?: StartTimer
}

/** ms until a store that is away is asked again. */
const askAgainMs = 1000

export function openKeyBook(
  log: Pick<Log, 'inbox'>,
  { onError, taken = new Set(), startTimer: start = startTimer }: KeyBookOptions,
): KeyBook {
  const closing = new AbortController()
  const fold = createKeyFold()
  const byDigest = new Map<string, { key: KnownKey; principal: Principal }>()
  /** By name, and not by principal: that of a key that was rotated is equal to the one before. */
  const waiting = new Map<string, Set<() => void>>()
  let n = 0

  function take(message: { n: number; key: string; message: unknown }): void {
    n = message.n
    const key = fold.apply(message)
    if (key === undefined) return
    if (taken.has(key.name)) {
      const cure = 'Give one of them another name.'
      if (key.revokedAt === undefined)
        onError(new Error(`The stored key "${key.name}" does not count: the config has a key of this name. ${cure}`))
      return
    }
    if (key.revokedAt === undefined) {
      byDigest.set(key.digest, { key, principal: noteKeyNumber(principalOf(key), key.n) })
      return
    }
    byDigest.delete(key.digest)
    for (const end of waiting.get(key.name) ?? []) end()
  }

  const ready = Promise.withResolvers<void>()
  ready.promise.catch(() => undefined)

  async function follow(): Promise<void> {
    const { signal } = closing
    let isFirst = true
    while (!signal.aborted) {
      try {
        if (isFirst) for await (const message of log.inbox(keyInbox)) take(message)
        ready.resolve()
        for await (const message of log.inbox(keyInbox, { after: n, signal })) take(message)
      } catch (error) {
        if (isFirst) ready.reject(error)
        // A store that is away comes back: until then the keys are those that are known.
        if (!signal.aborted) onError(error)
      }
      isFirst = false
      if (!signal.aborted) await new Promise<void>((done) => void start(askAgainMs, done))
    }
  }

  void follow()

  return {
    find(digest, now) {
      const found = byDigest.get(digest)
      if (found === undefined || !isSameSecret(digest, found.key.digest)) return undefined
      return (found.key.expiresAt ?? Infinity) > now ? found.principal : undefined
    },
    onRevoked(name, end, number) {
      const active = fold.active(name)
      const isRevoked = active === undefined || (number !== undefined && active.n !== number)
      // It was revoked after it was asked who this is.
      if (fold.count(name) > 0 && !taken.has(name) && isRevoked) {
        let isWaiting = true
        queueMicrotask(() => isWaiting && end())
        return () => void (isWaiting = false)
      }
      const ends = waiting.get(name) ?? new Set()
      waiting.set(name, ends.add(end))
      return () => {
        ends.delete(end)
        if (ends.size === 0 && waiting.get(name) === ends) waiting.delete(name)
      }
    },
    ready: ready.promise,
    close: () => closing.abort(),
  }
}

function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  const text = btoa(String.fromCharCode(...bytes))
  return keyPrefix + text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/u, '')
}
