/** `/api/keys`: the keys of programs that are kept in the store. A secret is in the answer to its making and nowhere else. An admin of a tenant has the keys of its tenant. */
import { MillraceError } from '../../part/error.ts'
import { timeOf } from '../../part/log.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { roles, type Actor, type Principal } from '../../part/principal.ts'
import { didYouMean } from '../../pipeline/nearest.ts'
import { endOf, endWords } from '../../project/access-values.ts'
import { unknownAgent } from '../access/check-access.ts'
import { addKey, listKeys, revokeKey, rotateKey, unknownKey, type NewKey, type StoredKey } from '../access/key-book.ts'
import type { RequestContext } from '../handler-context.ts'
import { readJson } from '../http/body.ts'
import { bad } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'

type KeyContext = Pick<RequestContext, 'runtime' | 'server' | 'principal' | 'maxBodyBytes'>

export function mountKeys(routes: Routes): void {
  routes.get('/api/keys', 'keys', getKeys)
  routes.post('/api/keys', 'keys', (context, { raw }) => postKey(context, raw))
  routes.delete('/api/keys/:name', 'keys', (context, request) => deleteKey(context, request.param('name')))
  routes.post('/api/keys/:name/rotate', 'keys', (context, request) => postRotation(context, request.param('name')))
}

/** `{keys: [{name, role, tenant?, agents?, limits?, createdAt, expiresAt?, revokedAt?, by?}]}`; those that count come first. */
export async function getKeys(context: KeyContext): Promise<Response> {
  return answer({ keys: await keysOf(context) })
}

/** Takes `{name, role?, tenant?, agents?, limits?, expires?}`; 201 with the key and its `secret`. 409 if there is one of this name. */
export async function postKey(context: KeyContext, request: Request): Promise<Response> {
  await keysOf(context)
  const body = await readJson(request, context.maxBodyBytes)
  const key = readKey(body, context)
  const secret = await addKey(logOf(context), key, made(context))
  return answer({ ...(await keyNamed(context, key.name)), secret }, 201)
}

/** Ends a key: its open streams end as well, on all instances. 404 if there is none. */
export async function deleteKey(context: KeyContext, name: string): Promise<Response> {
  await keyNamed(context, name)
  await revokeKey(logOf(context), name, made(context))
  return answer({ revoked: name })
}

/** A new `secret` for a key. The one before ends at once. */
export async function postRotation(context: KeyContext, name: string): Promise<Response> {
  await keyNamed(context, name)
  const secret = await rotateKey(logOf(context), name, made(context))
  return answer({ ...(await keyNamed(context, name)), secret })
}

function answer(body: object, status = 200): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } })
}

/** The keys of a store are those of everybody: the runtime of a caller shows only what is its own. */
function logOf({ server }: KeyContext) {
  return server.runtime.store.log
}

function made({ server, principal }: KeyContext): { now: number; by?: Actor | undefined } {
  return { now: timeOf(server.runtime.store), by: actorOf(principal) }
}

function actorOf({ id, tenant, name, key }: Principal): Actor | undefined {
  if (id === '') return key === undefined ? undefined : { id: key }
  return { id, ...omitUndefined({ tenant, name }) }
}

async function keysOf(context: KeyContext): Promise<StoredKey[]> {
  const { tenant, agents } = context.principal
  // With another key it could use the other agents, too.
  if (agents !== undefined) {
    throw new MillraceError('forbidden', 'A key for some agents may not manage keys.', { status: 403 })
  }
  const all = await listKeys(logOf(context))
  return tenant === undefined ? all : all.filter((key) => key.tenant === tenant)
}

/** Rejects with `unknown-key`, also for one of another tenant. */
async function keyNamed(context: KeyContext, name: string): Promise<StoredKey> {
  const keys = await keysOf(context)
  const found = keys.find((key) => key.name === name)
  if (found !== undefined) return found
  throw unknownKey(
    name,
    keys.map((key) => key.name),
  )
}

const known = ['name', 'role', 'tenant', 'agents', 'limits', 'expires']
const longestText = 256

function readKey(body: Record<string, unknown>, context: KeyContext): NewKey {
  for (const key of Object.keys(body)) {
    if (known.includes(key)) continue
    throw new MillraceError('bad-input', `unknown key "${key.slice(0, 60)}"${didYouMean(key, known)}`)
  }
  const { name, role = 'user', tenant, agents, limits, expires } = body
  const isName = (value: unknown) => typeof value === 'string' && value !== '' && value.length <= longestText
  const foundRole = roles.find((each) => each === role)
  if (typeof name !== 'string') throw bad('name', 'a string')
  if (foundRole === undefined) {
    const meant = typeof role === 'string' ? didYouMean(role, roles) : ''
    throw bad('role', `one of ${roles.join(', ')}${meant}`)
  }
  if (tenant !== undefined && !isName(tenant)) throw bad('tenant', `a string of 1 to ${longestText} characters`)
  if (limits !== undefined && !isLimits(limits)) throw bad('limits', 'an object of amounts by name')
  const expiresAt = expires === undefined ? undefined : typeof expires === 'string' ? endOf(expires) : Number.NaN
  if (expires !== undefined && (expiresAt === undefined || Number.isNaN(expiresAt))) throw bad('expires', endWords)
  if (expiresAt !== undefined && expiresAt <= timeOf(context.server.runtime.store))
    throw bad('expires', 'in the future')
  return {
    name,
    role: foundRole,
    tenant: ownTenant(tenant as string | undefined, context.principal),
    agents: agents === undefined ? undefined : agentIds(agents, context),
    limits: limits as Record<string, number> | undefined,
    expiresAt,
  }
}

/** An admin of a tenant makes keys of this tenant only. */
function ownTenant(given: string | undefined, { tenant }: Principal): string | undefined {
  if (tenant === undefined || given === undefined || given === tenant) return tenant ?? given
  throw new MillraceError('forbidden', 'You may add keys of your own tenant only.', { status: 403 })
}

/** Ids of the agents of these ids or aliases. */
function agentIds(given: unknown, { runtime }: KeyContext): string[] {
  if (!Array.isArray(given) || !given.every((each) => typeof each === 'string')) throw bad('agents', 'a list of names')
  return (given as string[]).map((name) => {
    const agent = runtime.agents.get(name)
    if (agent !== undefined) return agent.id
    const ids = runtime.agents.list().map(({ id }) => id)
    throw new MillraceError('bad-input', `agents: ${unknownAgent(name, ids)}.`)
  })
}

function isLimits(given: unknown): boolean {
  return (
    typeof given === 'object' &&
    given !== null &&
    !Array.isArray(given) &&
    Object.values(given).every((each) => typeof each === 'number' && Number.isFinite(each) && each >= 0)
  )
}
