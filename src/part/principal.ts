/** Who makes a request, what of it is recorded with a run, and whose threads are whose. */

export const roles = ['user', 'operator', 'admin'] as const
/**
 * `user`: its own threads and runs. `operator`: all threads and runs of its tenant. `admin`: also agents' texts, deletion, metrics, keys; of all
 * tenants if it has none.
 */
export type Role = (typeof roles)[number]

/** A claim of a token or of a session that the config lists. */
export type Claim = string | number | boolean

/** Begins the id of a key's principal: `key:ci`. */
export const keyPrincipal = 'key:'

/** Who makes a request. */
export interface Principal {
  /** Opaque, 1 to 256 characters. Empty: nobody in particular, on a server that does not ask, or with the server's own key. */
  id: string
  /** A group of principals whose data nobody else sees. Absent: all those without one are a group. */
  tenant?: string
  /** The strongest one counts. */
  roles: readonly Role[]
  /** For people who read. */
  name?: string
  /** Those that the config lists. */
  claims?: Readonly<Record<string, Claim>>
  /** The agents that it may use. Absent: all that are open to its roles. */
  agents?: readonly string[]
  /** The key that it came with, for quotas and the audit. */
  key?: string
  /** Epoch ms: its streams end then. */
  expiresAt?: number
}

/** The part of a principal that a run's log records: who started the run, or forked it. */
export interface RunUser {
  id: string
  tenant?: string
  name?: string
  roles?: readonly Role[]
  claims?: Readonly<Record<string, Claim>>
  key?: string
}

/** Who replied to a request. */
export type Actor = Pick<RunUser, 'id' | 'tenant' | 'name'>

export function actorOf(user: RunUser | undefined): Actor | undefined {
  if (user === undefined) return undefined
  const { id, tenant, name } = user
  return { id, ...(tenant !== undefined && { tenant }), ...(name !== undefined && { name }) }
}

/** Whose runs a list shows. Absent fields: everybody's. Empty texts: those that belong to no one. */
export interface OwnerFilter {
  owner?: string
  tenant?: string
}

/** The caller of a server that does not ask who calls. */
export const anyone: Principal = { id: '', roles: ['admin'] }

export function roleOf({ roles: given }: Pick<Principal, 'roles'>): Role {
  return given.includes('admin') ? 'admin' : given.includes('operator') ? 'operator' : 'user'
}

/** Undefined for {@link anyone}, whose runs belong to no one. */
export function runUserOf({ id, tenant, name, roles: given, claims, key }: Principal): RunUser | undefined {
  if (id === '') return undefined
  return {
    id,
    roles: given,
    ...(tenant !== undefined && { tenant }),
    ...(name !== undefined && { name }),
    ...(claims !== undefined && { claims }),
    ...(key !== undefined && { key }),
  }
}

/** The runs that belong to whom this run belongs to, as a condition of lists. */
export function runsOf(owner: Pick<RunUser, 'id' | 'tenant'> | undefined): Required<OwnerFilter> {
  return { owner: owner?.id ?? '', tenant: owner?.tenant ?? '' }
}

export function isSameOwner(
  one: Pick<RunUser, 'id' | 'tenant'> | undefined,
  other: Pick<RunUser, 'id' | 'tenant'> | undefined,
): boolean {
  const [a, b] = [runsOf(one), runsOf(other)]
  return a.owner === b.owner && a.tenant === b.tenant
}

/** Whether a caller with these roles may do what needs one of others. Without any it is nobody in particular, who may do everything. */
export function hasRole(given: readonly Role[] | undefined, needed: readonly Role[] | undefined): boolean {
  if (given === undefined || needed === undefined) return true
  return given.includes('admin') || needed.some((role) => given.includes(role))
}

/** To all others the agent does not exist. Admins may use every agent of their tenant. */
export interface AgentAccess {
  roles?: readonly Role[]
  tenants?: readonly string[]
}

/** Whether an agent with this `access` is open to a user. Nobody in particular may use every agent. */
export function isOpenTo(
  user: Pick<RunUser, 'roles' | 'tenant'> | undefined,
  { roles: needed, tenants }: AgentAccess = {},
): boolean {
  if (user === undefined) return true
  const { roles: given = [], tenant } = user
  const isAdmin = given.includes('admin')
  if (tenants !== undefined && !tenants.includes(tenant ?? '') && !(isAdmin && tenant === undefined)) return false
  return needed === undefined || isAdmin || needed.some((role) => given.includes(role))
}

/*
 * Clients choose ids of threads: two users may both have a thread `1`. So the id of a user's thread in the log is the client's with the owner behind
 * it: `1@@u1`, or `1@@acme/u1` with a tenant. Ids without an owner stay as they are.
 */

const mark = '@@'

/** Ends the ids of all threads of an owner, and of no other. Empty for no owner. */
export function threadMark(owner: Pick<RunUser, 'id' | 'tenant'> | undefined): string {
  if (owner === undefined || owner.id === '') return ''
  const tenant = owner.tenant === undefined ? '' : `${encodeURIComponent(owner.tenant.toWellFormed())}/`
  return `${mark}${tenant}${encodeURIComponent(owner.id.toWellFormed())}`
}

/** The id in the log of a thread that a principal names: either form names its own. */
export function scopedThread(id: string, owner: Pick<RunUser, 'id' | 'tenant'> | undefined): string {
  const end = threadMark(owner)
  return end === '' || (id.endsWith(end) && id.length > end.length) ? id : `${id}${end}`
}

/** The id as the client of its owner named it. */
export function plainThread(id: string): string {
  const at = id.lastIndexOf(mark)
  return at > 0 ? id.slice(0, at) : id
}

/** Whose thread it is, by its id in the log. Undefined for one of no owner, and for an id of another form. */
export function threadOwner(id: string): Pick<RunUser, 'id' | 'tenant'> | undefined {
  const at = id.lastIndexOf(mark)
  if (at < 1) return undefined
  const [owner, tenant, ...more] = id
    .slice(at + mark.length)
    .split('/')
    .toReversed()
  try {
    const name = decodeURIComponent(owner!)
    if (name === '' || more.length > 0) return undefined
    return { id: name, ...(tenant !== undefined && { tenant: decodeURIComponent(tenant) }) }
  } catch {
    return undefined
  }
}

/** The thread of a run as its client has named it. */
export function clientThread({ threadId, user }: { threadId: string; user?: RunUser }): string {
  return user === undefined ? threadId : plainThread(threadId)
}

/** Whether the id is one of a user's thread. */
export function isOwnedThread(id: string): boolean {
  return id.lastIndexOf(mark) > 0
}
