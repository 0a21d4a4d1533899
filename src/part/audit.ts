/** Who did what: decisions and changes that somebody may have to account for. It has no text of prompts, answers or tools. */

export type AuditOutcome = 'done' | 'refused'

/** An action, for {@link Audit.add}. Texts are at most 512 characters; longer ones are cut. */
export interface NewAuditRow {
  /** Epoch ms. */
  time: number
  /** The id of who did it; empty: nobody in particular. */
  principal: string
  /** Empty: those without a tenant. */
  tenant: string
  /** The name of its key; empty: it came without one. */
  key: string
  /** Such as `runs.stop`. */
  action: string
  /** Such as `run_…`, an agent's id or a key's name; empty: none in particular. */
  resource: string
  outcome: AuditOutcome
  /** Where the request came from; empty: not known. */
  address: string
}

export interface AuditRow extends NewAuditRow {
  /** Grows with each row of a tenant. */
  n: number
}

/** Which rows to list, the newest first. Conditions are combined with AND. */
export interface AuditQuery {
  /** Absent: those of all tenants. */
  tenant?: string | undefined
  principal?: string | undefined
  action?: string | undefined
  outcome?: AuditOutcome | undefined
  /** Only rows listed after this `n`: the next page. */
  before?: number | undefined
  /** 1–1000, default 100. */
  limit?: number | undefined
}

/** Every method rejects with `store-failed` when the store fails. */
export interface Audit {
  add(row: NewAuditRow): Promise<void>
  list(query?: AuditQuery): Promise<AuditRow[]>
  /** Deletes rows older than this (epoch ms). Resolves with how many. */
  prune(before: number): Promise<number>
}

/** Maximum length of a text. */
export const longestAuditText = 512
/** Rows of a tenant that a store in memory keeps. */
export const keptAuditRows = 10_000

/** The least number of a row: its time, in no exact unit. A counter would tell each tenant how many rows the others have. */
export function auditNumber(time: number): number {
  return Math.floor(time) * 1000 + Math.floor(Math.random() * 1000)
}

/** The row as it is stored. */
export function toAuditRow(row: NewAuditRow): NewAuditRow {
  const cut = (text: string) => text.slice(0, longestAuditText).toWellFormed()
  const { time, principal, tenant, key, action, resource, outcome, address } = row
  return {
    time,
    principal: cut(principal),
    tenant: cut(tenant),
    key: cut(key),
    action: cut(action),
    resource: cut(resource),
    outcome,
    address: cut(address),
  }
}

export function matchesAudit(row: AuditRow, { tenant, principal, action, outcome, before }: AuditQuery): boolean {
  return (
    (tenant === undefined || row.tenant === tenant) &&
    (principal === undefined || row.principal === principal) &&
    (action === undefined || row.action === action) &&
    (outcome === undefined || row.outcome === outcome) &&
    (before === undefined || row.n < before)
  )
}
