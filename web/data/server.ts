/** What the server is, and who is signed in: `GET /api/server`, asked for once for the whole page, and again when that may have changed. */
import { useSyncExternalStore } from 'react'
import { hasRole, plainThread, threadOwner, type Role } from '../../src/part/principal.ts'
import { api } from './client.ts'
import { keyAccepted, onKey, readChanges, readKey } from './key.ts'
import { nameCaller, onConnection, readConnection } from './live.ts'

export interface ServerFacts {
  edit: boolean | 'token'
  maxBodyBytes: number
  features?: { tests?: boolean }
  /** Absent on a server that does not ask who calls. */
  user?: SignedIn
}

export interface SignedIn {
  /** Empty: the holder of the server's own key. */
  id: string
  name?: string
  tenant?: string
  /** The key that it came with. */
  key?: string
  role: Role
  /** The actions of its role, such as `runs.delete`. */
  may: readonly string[]
}

export interface KnownServer {
  /** The last that was read; after a refusal they say who was signed in. */
  facts: ServerFacts | undefined
  /** How often somebody else has signed in since the page was opened. */
  people: number
}

let known: KnownServer = { facts: undefined, people: 0 }
let round = 0
let isStarted = false
const listeners = new Set<() => void>()

async function load(): Promise<void> {
  const own = ++round
  const key = readKey()
  // What failed is asked for again when there is a connection or another key.
  const facts = await api<ServerFacts>('/api/server').catch(() => undefined)
  if (facts === undefined || own !== round) return
  const isOther = known.facts !== undefined && callerOf(known.facts) !== callerOf(facts)
  known = { facts, people: known.people + Number(isOther) }
  nameCaller(callerOf(facts))
  keyAccepted(key)
  for (const listener of listeners) listener()
}

function callerOf({ user }: ServerFacts): string {
  return user === undefined ? '' : JSON.stringify([user.tenant, user.id, user.key])
}

function start(): void {
  isStarted = true
  void load()
  let changes = readChanges()
  onKey(() => {
    if (changes !== readChanges()) void load()
    changes = readChanges()
  })
  let { state } = readConnection()
  let isStale = false
  onConnection(() => {
    const before = state
    ;({ state } = readConnection())
    if (state === before) return
    isStale ||= state === 'offline' || state === 'unauthorized'
    // What the browser had, such as a session, may have ended: the answer says so. Behind a connection that is back there may be another server.
    if (state === 'unauthorized' || (state === 'open' && (isStale || known.facts === undefined))) void load()
    if (state === 'open') isStale = false
  })
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (!isStarted) start()
  return () => void listeners.delete(listener)
}

export function useServer(): KnownServer {
  return useSyncExternalStore(subscribe, () => known)
}

export function useSignedIn(): SignedIn | undefined {
  return useServer().facts?.user
}

/** Whether the caller's role may take an action. Undefined until it is known. */
export function useMay(
  action: 'agents.read' | 'runs.judge' | 'runs.stop' | 'runs.delete' | 'tests.read' | 'tests.edit',
): boolean | undefined {
  const { facts } = useServer()
  return facts && (facts.user === undefined || facts.user.may.includes(action))
}

/** Whether the runs of others are shown, too: then lists say whose a run is. */
export function useSeesOthers(): boolean {
  return seesOthers(useSignedIn())
}

function seesOthers(user: SignedIn | undefined): boolean {
  return user !== undefined && user.role !== 'user'
}

/** A function that says whether the caller may delete what belongs to an owner. */
export function useMayDelete(): (owner: string | undefined) => boolean {
  const { facts } = useServer()
  return (owner) => facts !== undefined && mayDelete(facts.user, owner)
}

/** An operator deletes only what is its own. */
export function mayDelete(user: SignedIn | undefined, owner: string | undefined): boolean {
  if (user === undefined) return true
  if (!user.may.includes('runs.delete')) return false
  return user.role !== 'operator' || (user.id !== '' && owner === user.id)
}

/** Whether an approval may be given by whoever is signed in. */
export function mayAnswer(user: SignedIn | undefined, { roles }: { roles?: readonly Role[] }): boolean {
  return hasRole(user && [user.role], roles)
}

/** What a thread is called. Who sees the threads of others gets ids with the owner in them: `1@@acme/u1` is the `1` of `u1`. */
export function useThreadName(): (id: string) => { name: string; owner?: string; tenant?: string } {
  const isForOthers = useSeesOthers()
  return (id) => {
    const owner = isForOthers ? threadOwner(id) : undefined
    if (owner === undefined) return { name: id }
    const { id: name, tenant } = owner
    return { name: plainThread(id), owner: name, ...(tenant !== undefined && { tenant }) }
  }
}
