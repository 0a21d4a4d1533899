import { MillraceError, toErrorValue } from '../part/error.ts'
import type { QueryOptions, Records } from '../part/records.ts'

/**
 * Runs a query of Millrace's own and returns its rows as objects. It asks for what every database has, so that the database is to blame
 * for whatever is wrong: rejects with `store-failed`, and the words of the database in `detail`.
 */
export async function queryRows<Row>(
  records: Records,
  what: string,
  sql: string,
  options: QueryOptions,
): Promise<Row[]> {
  try {
    const { columns, rows } = await records.query(sql, options)
    return rows.map((values) => Object.fromEntries(columns.map((name, i) => [name, values[i]])) as Row)
  } catch (cause) {
    const { code, message: detail } = toErrorValue(cause)
    if (code !== 'bad-query') throw cause
    throw new MillraceError('store-failed', `cannot ${what}: the store failed`, { status: 503, detail, cause })
  }
}
