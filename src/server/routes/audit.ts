/** `GET /api/audit`: who did what, and what was refused. `recordAudit` adds to it. */
import type { AuditOutcome, AuditQuery, AuditRow, NewAuditRow } from '../../part/audit.ts'
import { MillraceError } from '../../part/error.ts'
import { timeOf, type Store } from '../../part/log.ts'
import { type OwnerFilter, type Principal } from '../../part/principal.ts'
import type { HandlerContext } from '../handler-context.ts'
import { bad, readQuery, wholeNumber } from '../http/query.ts'
import type { Routes } from '../http/routes.ts'

export function mountAudit(routes: Pick<Routes, 'get'>, server: Pick<HandlerContext, 'runtime'>): void {
  routes.get('/api/audit', 'audit', ({ filter }, { url }) => getAudit(server.runtime.store, filter, new URL(url)))
}

export interface AuditContext {
  store: Pick<Store, 'audit' | 'now'>
  /** Called with a failure of the store. */
  onError?: (error: unknown) => void
}

/** What {@link recordAudit} is told of an action. */
export interface Audited {
  /** Absent: nobody, such as a request without a valid credential. */
  principal?: Pick<Principal, 'id' | 'tenant' | 'key'> | undefined
  /** Such as `runs.stop`. */
  action: string
  /** Whose operators see the row. Default: that of the principal. An admin of all tenants acts in the tenant of the run. */
  tenant?: string | undefined
  /** Such as a run's id. Never a text of a prompt, an answer or a tool. */
  resource?: string | undefined
  outcome: AuditOutcome
  address?: string | undefined
}

/** Rows that wait for the store. Beyond, rows are dropped: a store that does not answer must not fill the memory. */
const mostPending = 1000
const pending = new WeakMap<object, number>()

/** Adds a row beside the request: it neither delays nor fails it. */
export function recordAudit(
  { store, onError }: AuditContext,
  { principal, action, resource = '', outcome, address = '', ...given }: Audited,
): void {
  const { audit } = store
  if (audit === undefined) return
  const waiting = pending.get(audit) ?? 0
  if (waiting >= mostPending) return
  pending.set(audit, waiting + 1)
  const { id = '', key = '' } = principal ?? {}
  const tenant = given.tenant ?? principal?.tenant ?? ''
  const row: NewAuditRow = { time: timeOf(store), principal: id, tenant, key, action, resource, outcome, address }
  void add(audit, row)
    .catch((error: unknown) => onError?.(error))
    .finally(() => pending.set(audit, pending.get(audit)! - 1))
}

async function add(audit: NonNullable<Store['audit']>, row: NewAuditRow): Promise<void> {
  await audit.add(row)
}

const outcomes: readonly string[] = ['done', 'refused'] satisfies AuditOutcome[]

/** The page of `url`. `visible`: what the caller may see, as `visibleTo` says. Throws `bad-input`. */
export async function listAudit(store: Pick<Store, 'audit'>, visible: OwnerFilter, url: URL): Promise<AuditRow[]> {
  const given = readQuery(url, { before: 20, limit: 10, action: 128, user: 512, outcome: 20 })
  const { before, limit, action, user, outcome } = given
  if (outcome !== undefined && !outcomes.includes(outcome)) throw bad('outcome', `one of ${outcomes.join(', ')}`)
  const query: AuditQuery = {
    tenant: visible.tenant,
    principal: visible.owner ?? user,
    action,
    outcome: outcome as AuditOutcome | undefined,
    before: before === undefined ? undefined : wholeNumber(before, 'before', 1, Number.MAX_SAFE_INTEGER),
    limit: limit === undefined ? undefined : wholeNumber(limit, 'limit', 1, 1000),
  }
  if (store.audit === undefined) throw new MillraceError('bad-request', 'This store keeps no audit.', { status: 400 })
  // Nobody learns by a filter what it does not see.
  if (visible.owner !== undefined && user !== undefined && user !== visible.owner) return []
  return store.audit.list(query)
}

/** The newest first; `next` is the `before` of the next page, if there may be one. */
export async function getAudit(store: Pick<Store, 'audit'>, visible: OwnerFilter, url: URL): Promise<Response> {
  const rows = await listAudit(store, visible, url)
  const limit = Number(url.searchParams.get('limit') ?? 100)
  const next = rows.length === limit ? { next: rows.at(-1)!.n } : {}
  return Response.json({ rows, ...next }, { headers: { 'cache-control': 'no-store' } })
}
