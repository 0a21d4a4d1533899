/**
 * The row of a run from the fields of its hash, which may be damaged: then the row reports it, with its readable fields, because one run must not
 * break a list.
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { runStatuses, type RunStatus } from '../../part/log.ts'
import { unreadableRow } from '../store-error.ts'
import type { StoredRow } from '../run-row.ts'

/** The fields that {@link readRow} takes, in this order. */
export const rowFields = ['row', 'epoch', 'seq', 'at', 'status'] as const
/** Fields of a run outside of its row: for a damaged row. */
export const otherFields = ['agent', 'thread', 'started', 'user', 'tenant'] as const

type Check = (value: unknown) => boolean

/** The maximum time of a `Date`. */
const lastTime = 8.64e15
const isText: Check = (value) => typeof value === 'string'
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isNumber: Check = (value) => Number.isFinite(value)
const isTime: Check = (value) => isNumber(value) && (value as number) >= 0 && (value as number) <= lastTime
const has = (checks: Record<string, Check>): Check => {
  const all = Object.entries(checks)
  return (value) =>
    typeof value === 'object' && value !== null && all.every(([name, check]) => check((value as never)[name]))
}
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const isUsage: Check = (value) =>
  has({ source: isText })(value) &&
  Object.entries(value as object).every(([name, each]) => name === 'source' || isNumber(each))

const needed = Object.entries({
  agent: isText,
  threadId: isText,
  protocol: isText,
  startedAt: isTime,
  open: listOf(has({ id: isText, step: isText, deadline: isNumber })),
} satisfies { [Name in keyof StoredRow]?: Check })

const optional = Object.entries({
  parentRunId: isText,
  previousRunId: isText,
  owner: isText,
  tenant: isText,
  title: isText,
  models: listOf(isText),
  endedAt: isTime,
  compactedAt: isTime,
  firstTokenMs: isNumber,
  errors: isCount,
  cost: isNumber,
  usage: isUsage,
  error: has({ code: isText, message: isText }),
  answers: listOf(isText),
  sharedTo: isCount,
  suspendedMs: isNumber,
  suspendedAt: isTime,
} satisfies { [Name in keyof StoredRow]?: Check })

export interface ReadRow {
  row: StoredRow
  isDamaged: boolean
}

/** `others`: the values of {@link otherFields}, for a damaged row. */
export function readRow(
  run: string,
  [text, epoch, seq, at, status]: readonly (string | null | undefined)[],
  others: readonly (string | null | undefined)[] = [],
): ReadRow {
  const damaged: string[] = []
  const known = parse(text)
  const isWhole = known !== undefined && needed.every(([name, check]) => check(known[name]))
  if (!isWhole) damaged.push('row')
  const row = { ...(isWhole ? known : fromOthers(others)), id: run } as StoredRow
  for (const [name, check] of optional) {
    if (row[name as keyof StoredRow] === undefined || check(row[name as keyof StoredRow])) continue
    delete row[name as keyof StoredRow]
    damaged.push('row')
  }
  const take = (field: string, value: string | null | undefined, check: Check, before: unknown, otherwise: number) => {
    const number = value === '' ? Number.NaN : Number(value ?? Number.NaN)
    if (check(number)) return number
    damaged.push(field)
    return check(before) ? (before as number) : otherwise
  }
  row.epoch = take('epoch', epoch, isCount, row.epoch, 1)
  row.lastSeq = take('seq', seq, isCount, row.lastSeq, 0)
  row.updatedAt = take('at', at, isTime, row.updatedAt, row.startedAt)
  if (isStatus(status)) row.status = status
  else {
    damaged.push('status')
    if (!isStatus(row.status)) row.status = 'failed'
  }
  if (damaged.length === 0) return { row, isDamaged: false }
  const names = [...new Set(damaged)].join(', ')
  const message = `What Redis has of this run is damaged: ${names} in the key that ends in :run:${run}.`
  return { row: { ...row, error: { code: unreadableRow, message } }, isDamaged: true }
}

function isStatus(value: unknown): value is RunStatus {
  return (runStatuses as readonly unknown[]).includes(value)
}

function parse(text: string | null | undefined): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text!) as unknown
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function fromOthers([agent, thread, started, user, tenant]: readonly (
  | string
  | null
  | undefined
)[]): Partial<StoredRow> {
  const startedAt = Number(started ?? Number.NaN)
  return omitUndefined({
    agent: agent ?? '',
    threadId: thread ?? '',
    owner: user ?? undefined,
    tenant: tenant ?? undefined,
    protocol: '',
    startedAt: started !== '' && isTime(startedAt) ? startedAt : 0,
    open: [],
  })
}
