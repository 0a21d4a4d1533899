/** Limits of users, tenants and keys: `server.quotas` in the config. `access/quotas.ts` applies them. */

/** Limits of one user, tenant or key. Absent ones do not apply. */
export interface Quota {
  /** Starts: so many at once, then one in each share of a minute. */
  runsPerMinute?: number
  /** Open at the same time. */
  streams?: number
  tokensPerMinute?: number
  tokensPerDay?: number
  tokensPerMonth?: number
  usdPerMinute?: number
  usdPerDay?: number
  usdPerMonth?: number
}

/** For each user, each tenant and each key. Those without a tenant are one tenant. */
export interface QuotasConfig {
  perUser?: Quota
  perTenant?: Quota
  perKey?: Quota
}

/** A quota and what is used of it, as `GET /api/usage` shows it. */
export interface QuotaUse {
  /** As the config names it: `perUser.tokensPerDay`. */
  which: string
  limit: number
  /** Tokens or USD in the current window. Absent for starts and streams, and in what a user sees of its tenant. */
  used?: number
  /** Epoch ms: the end of the window. Absent for starts and streams. */
  resetsAt?: number
}
