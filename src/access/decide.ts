/**
 * The one decision: may a principal take an action, here or on this resource? Routes and messages declare their actions; stores and runtimes that are
 * scoped to a principal (`scope-runtime.ts`) ask for each run.
 */
import { isOpenTo, roleOf, type AgentAccess, type OwnerFilter, type Principal, type Role } from '../part/principal.ts'

/** Which roles may ever take an action, on any resource. */
const table = {
  /** Without a principal: health, the page's files, sign-in. */
  open: ['user', 'operator', 'admin'],
  'agents.list': ['user', 'operator', 'admin'],
  /** Texts and prompts of agents, and their checks. */
  'agents.read': ['operator', 'admin'],
  'agents.edit': ['admin'],
  /** Test cases, which have what somebody has said, and their results. */
  'tests.read': ['operator', 'admin'],
  /** Adding, deleting and running them writes files and may ask models. */
  'tests.edit': ['admin'],
  'runs.start': ['user', 'operator', 'admin'],
  'runs.read': ['user', 'operator', 'admin'],
  'runs.stop': ['user', 'operator', 'admin'],
  'runs.answer': ['user', 'operator', 'admin'],
  'runs.fork': ['user', 'operator', 'admin'],
  /** Thumbs and notes. */
  'runs.judge': ['user', 'operator', 'admin'],
  /** The title of a thread. */
  'runs.rename': ['user', 'operator', 'admin'],
  'runs.delete': ['user', 'operator', 'admin'],
  'runs.import': ['operator', 'admin'],
  /** Sums over runs. */
  stats: ['user', 'operator', 'admin'],
  audit: ['operator', 'admin'],
  keys: ['admin'],
  metrics: ['admin'],
  /** Compaction, and deletion by age. */
  upkeep: ['admin'],
  /** SQL. */
  query: ['admin'],
} as const satisfies Record<string, readonly Role[]>

export type Action = keyof typeof table

export const actions = Object.keys(table) as Action[]

/** Actions that an operator may take on runs of others in its tenant. */
const onOthers: ReadonlySet<Action> = new Set([
  'runs.read',
  'runs.stop',
  'runs.answer',
  'runs.fork',
  'runs.judge',
  'stats',
])

/** Actions on what all tenants share: only for those without a tenant. */
const onAll: ReadonlySet<Action> = new Set(['agents.edit', 'tests.read', 'tests.edit', 'metrics', 'upkeep', 'query'])

/** Actions with texts of agents, each of which may call any other: not for those to whom only some are open. */
const onAllAgents: ReadonlySet<Action> = new Set(['agents.edit', 'tests.edit'])

/** Whom a run belongs to. Absent: no one. */
export type Owned = OwnerFilter

/** `forbidden`: its role may never do it, or not on what it may see. `unknown`: for this principal there is no such resource. */
export type Decision = 'allow' | 'forbidden' | 'unknown'

export function decide(principal: Principal, action: Action, resource?: Owned): Decision {
  // Nobody was asked who it is.
  if (principal.roles.length === 0) return action === 'open' ? 'allow' : 'forbidden'
  const role = roleOf(principal)
  if (!(table[action] as readonly Role[]).includes(role)) return 'forbidden'
  if (onAll.has(action) && principal.tenant !== undefined) return 'forbidden'
  if (onAllAgents.has(action) && principal.agents !== undefined) return 'forbidden'
  if (resource === undefined) return 'allow'
  if (!isVisible(principal, resource)) return 'unknown'
  const isOwn = principal.id !== '' && resource.owner === principal.id
  return role !== 'operator' || isOwn || onOthers.has(action) ? 'allow' : 'forbidden'
}

/** The runs that a principal may see, as a condition of lists. */
export function visibleTo(principal: Principal): OwnerFilter {
  const role = roleOf(principal)
  const { id, tenant } = principal
  if (role === 'user') return { owner: id, tenant: tenant ?? '' }
  return role === 'admin' && tenant === undefined ? {} : { tenant: tenant ?? '' }
}

function isVisible(principal: Principal, resource: Owned): boolean {
  const filter = visibleTo(principal)
  const { owner = '', tenant = '' } = resource
  return (
    (filter.tenant === undefined || filter.tenant === tenant) && (filter.owner === undefined || filter.owner === owner)
  )
}

/** Whether an agent is open to a principal. Others do not exist for it. */
export function mayUse(principal: Principal, agent: { id: string; access?: AgentAccess | undefined }): boolean {
  const { agents } = principal
  return (agents === undefined || agents.includes(agent.id)) && isOpenTo(principal, agent.access)
}
