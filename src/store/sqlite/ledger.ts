/** The tables `ledger` and `audit` of a SQLite file. */
import type { DatabaseSync } from 'node:sqlite'
import { auditNumber, toAuditRow, type Audit, type AuditRow } from '../../part/audit.ts'
import type { Ledger } from '../../part/ledger.ts'

/** `ledger`: sums, and the marks of what was counted once. `audit`: who did what. Times are epoch ms. */
export const ledgerTables = `
  CREATE TABLE ledger (
    book TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    value INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (book, kind, key)
  ) WITHOUT ROWID;
  CREATE INDEX ledger_by_until ON ledger (until);
  CREATE TABLE audit (
    n INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    principal TEXT NOT NULL,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    action TEXT NOT NULL,
    resource TEXT NOT NULL,
    outcome TEXT NOT NULL,
    address TEXT NOT NULL
  );
  CREATE INDEX audit_by_tenant ON audit (tenant);
  CREATE INDEX audit_by_time ON audit (time);`

export interface TableContext {
  db: DatabaseSync
  /** Runs `apply` in a transaction. */
  write<T>(what: string, apply: () => T): Promise<T>
  /** Runs a read; failures become `store-failed`. */
  reading<T>(what: string, read: () => T): T
  now?: () => number
}

/** ms between two times at which rows that may be dropped are. */
const dropEvery = 60_000
/** Rows that are dropped at once. */
const dropAtOnce = 1000

export function createSqliteLedger({ db, write, reading, now = Date.now }: TableContext): Ledger {
  const find = db.prepare('SELECT value FROM ledger WHERE book = ? AND kind = ? AND key = ? AND until > ?')
  const keep = db.prepare(
    `INSERT INTO ledger VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (book, kind, key) DO UPDATE SET value = excluded.value, until = excluded.until`,
  )
  const drop = db.prepare(
    `DELETE FROM ledger WHERE (book, kind, key) IN (SELECT book, kind, key FROM ledger WHERE until <= ? LIMIT ${dropAtOnce})`,
  )
  let droppedAt = 0

  const valueOf = (book: string, kind: 'sum' | 'mark', key: string, at: number) =>
    Number(find.get(book, kind, key, at)?.value ?? 0)

  return {
    add(book, amounts, once) {
      return write('count in the ledger', () => {
        const at = now()
        const isCounted = once !== undefined && valueOf(book, 'mark', once.key, at) >= once.position
        if (once !== undefined && !isCounted) keep.run(book, 'mark', once.key, once.position, once.until)
        if (at - droppedAt >= dropEvery) {
          droppedAt = at
          drop.run(at)
        }
        return amounts.map(({ key, amount, until }) => {
          const value = valueOf(book, 'sum', key, at) + (isCounted ? 0 : amount)
          if (!isCounted) keep.run(book, 'sum', key, value, until)
          return value
        })
      })
    },
    async read(book, keys) {
      const at = now()
      return reading('read the ledger', () => keys.map((key) => valueOf(book, 'sum', key, at)))
    },
    async mark(book, key) {
      const at = now()
      return reading('read the ledger', () => valueOf(book, 'mark', key, at))
    },
  }
}

const columns = 'n, time, principal, tenant, key, action, resource, outcome, address'

export function createSqliteAudit({ db, write, reading }: TableContext): Audit {
  const insert = db.prepare(
    `INSERT INTO audit (n, time, principal, tenant, key, action, resource, outcome, address)
     VALUES (max(:n, 1 + coalesce((SELECT max(n) FROM audit WHERE n >= :n), 0)), ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const prune = db.prepare(
    `DELETE FROM audit WHERE n IN (SELECT n FROM audit WHERE time < ? ORDER BY time LIMIT ${dropAtOnce})`,
  )
  const select = (where: string) =>
    db.prepare(`SELECT ${columns} FROM audit WHERE ${where} ORDER BY n DESC LIMIT :limit`)
  const rest = `(:principal IS NULL OR principal = :principal) AND (:action IS NULL OR action = :action)
    AND (:outcome IS NULL OR outcome = :outcome) AND n < :before`
  const ofTenant = select(`tenant = :tenant AND ${rest}`)
  const ofAll = select(rest)

  return {
    async add(given) {
      const { time, principal, tenant, key, action, resource, outcome, address } = toAuditRow(given)
      await write('write the audit', () => {
        insert.run({ n: auditNumber(time) }, time, principal, tenant, key, action, resource, outcome, address)
      })
    },
    async list({ tenant, principal, action, outcome, before = Number.MAX_SAFE_INTEGER, limit = 100 } = {}) {
      const given = { principal: principal ?? null, action: action ?? null, outcome: outcome ?? null, before, limit }
      return reading('read the audit', () => {
        const rows = tenant === undefined ? ofAll.all(given) : ofTenant.all({ ...given, tenant })
        return rows.map((row) => ({ ...row }) as unknown as AuditRow)
      })
    },
    async prune(before) {
      for (let pruned = 0; ;) {
        const changes = await write('prune the audit', () => Number(prune.run(before).changes))
        pruned += changes
        if (changes < dropAtOnce) return pruned
      }
    },
  }
}
