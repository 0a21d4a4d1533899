/** `millrace query`: SQL over the tables, read-only. */
import type { CommandContext } from '../context.ts'
import { MillraceError } from '../../part/error.ts'
import { ownValue } from '../../part/own-value.ts'
import type { QueryResult } from '../../part/records.ts'
import { didYouMean, nearest } from '../../pipeline/nearest.ts'
import { namedQueries } from '../../store/tables/named-queries.ts'
import { tableDocs } from '../../store/tables/table-docs.ts'
import { forStream, printable, paint, writeOut } from '../terminal/output.ts'
import { openIndexed, refuseSharedStore } from '../connection/folder.ts'
import { formatTable, cut } from '../terminal/table.ts'
import type { QueryFlags, QueryFormat } from './query.ts'

const sqlCure = 'Use millrace ps, stats and threads, or export runs and import them into a data folder.'

export async function runQuery(context: CommandContext, sql: string | undefined, flags: QueryFlags): Promise<void> {
  if (flags.list === true) return writeOut(context, `${listing()}\n`)
  if (flags.schema === true) return writeOut(context, `${schema(context)}\n`)
  const limit = Number(flags.limit)
  if (!/^\d+$/u.test(flags.limit) || limit < 1) {
    throw new MillraceError('usage', `--limit must be a whole number from 1, not "${flags.limit}".`)
  }
  const statement = statementOf(sql, flags.named)
  const parameters = { ...statement.defaults, ...toParameters(flags.param) }
  if (!flags.isNamed) await refuseSharedStore(context, 'which has no SQL', sqlCure)
  const result = await run(context, flags.data, statement.sql, { limit, parameters })
  const format = flags.format ?? (flags.json === true ? 'json' : 'table')
  const text = formatRows(context, result, format, context.stdout.columns)
  // The cells of a table are printable, and its head is bold.
  await writeOut(context, format === 'table' ? text : forStream(text, context.stdout))
  if (result.truncated) context.stderr.write(`(more rows: use --limit ${limit * 10})\n`)
}

function statementOf(sql: string | undefined, named: string | undefined) {
  if (named === undefined) {
    if (sql !== undefined) return { sql, defaults: {} }
    throw new MillraceError('usage', 'Which query? Pass an SQL statement, or --named <name>; --list lists the names.')
  }
  if (sql !== undefined) throw new MillraceError('usage', 'Pass either an SQL statement or --named, not both.')
  const found = ownValue<(typeof namedQueries)[string]>(namedQueries, named)
  if (found !== undefined) return found
  const names = Object.keys(namedQueries)
  const hint = didYouMean(named, names)
  throw new MillraceError('usage', `There is no query "${named}"${hint}. Known: ${names.join(', ')}.`)
}

function toParameters(given: readonly string[]): Record<string, string | number> {
  const found = new Map<string, string | number>()
  for (const each of given) {
    const [, name, value] = /^:?(\w+)=([^]*)$/u.exec(each) ?? []
    if (name === undefined) throw new MillraceError('usage', `--param must be name=value, not "${each}".`)
    found.set(name, /^-?(?:0|[1-9]\d{0,14})(?:\.\d+)?$/u.test(value!) ? Number(value) : value!)
  }
  return Object.fromEntries(found)
}

async function run(
  context: CommandContext,
  data: string,
  sql: string,
  options: { limit: number; parameters: Record<string, string | number> },
): Promise<QueryResult> {
  const store = await openIndexed(context, data)
  try {
    return await store.records!.query(sql, options)
  } catch (error) {
    throw explain(error, sql)
  } finally {
    await store.close()
  }
}

/** Says which table or column was meant. */
function explain(error: unknown, sql: string): unknown {
  if (!(error instanceof MillraceError) || error.code !== 'bad-query') return error
  const [, what, name] = /^no such (table|column): (?:\w+\.)?(\w+)/u.exec(error.message) ?? []
  if (what === undefined) return error
  const tables = Object.keys(tableDocs)
  const mentioned = tables.filter((table) => new RegExp(`\\b${table}\\b`, 'iu').test(sql))
  const meant =
    what === 'table' ? meantTable(name!, tables) : meantColumn(name!, mentioned.length > 0 ? mentioned : tables)
  const hint = meant === undefined ? '' : ` (did you mean "${meant}"?)`
  const known = what === 'table' ? `Known: ${tables.join(', ')}.` : 'millrace query --schema lists the columns.'
  return new MillraceError('bad-query', `There is no ${what} "${name}"${hint}. ${known}`)
}

/** `runs` has its own id as `id`, other tables have that of their run as `run`: the two are often confused. */
function meantColumn(name: string, tables: readonly string[]): string | undefined {
  const columns = [...new Set(tables.flatMap((table) => Object.keys(tableDocs[table]!.columns)))]
  const stem = stemOf(name)
  if (/id$/iu.test(name) && columns.includes('id') && tables.some((table) => stemOf(table) === stem)) return 'id'
  return columns.find((each) => stemOf(each) === stem) ?? nearest(name, columns)
}

/** The only one that has the word, before one that is only spelled like it. */
function meantTable(name: string, tables: readonly string[]): string | undefined {
  const stem = stemOf(name)
  const [only, ...others] = tables.filter((each) => each.split('_').map(stemOf).includes(stem))
  const word = others.length === 0 ? only : undefined
  return tables.find((each) => stemOf(each) === stem) ?? word ?? nearest(name, tables)
}

/** The same for `runs`, `runId`, `run_id` and `run`. */
function stemOf(name: string): string {
  return name
    .replaceAll(/(?<=[a-z])(?=[A-Z])/gu, '_')
    .toLowerCase()
    .replace(/_id$/u, '')
    .replace(/s$/u, '')
}

function listing(): string {
  const rows = Object.entries(namedQueries).map(([name, { about, defaults }]) => {
    const usual = Object.entries(defaults).map(([key, value]) => `${key}=${value}`)
    return [name, usual.join(' '), about]
  })
  return formatTable(['NAME', 'DEFAULTS', 'ABOUT'], rows)
}

function schema(context: CommandContext): string {
  return Object.entries(tableDocs)
    .map(([table, { about, columns }]) => {
      const width = Math.max(...Object.keys(columns).map(({ length }) => length))
      const lines = Object.entries(columns).map(
        ([name, what]) => `  ${name.padEnd(width)}  ${what.replaceAll('`', '')}`,
      )
      return [`${paint(context, 'bold', table)}  ${printable(about.replaceAll('`', ''))}`, ...lines].join('\n')
    })
    .join('\n\n')
}

/** Prints the result of a query. */
/** Longest cell of a table, in columns of the terminal. */
const maxCell = 80

function formatRows(
  context: CommandContext,
  { columns, rows }: QueryResult,
  format: QueryFormat,
  width = Infinity,
): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(
        rows.map((row) => toObject(columns, row)),
        null,
        2,
      )}\n`
    case 'ndjson':
      return rows.map((row) => `${JSON.stringify(toObject(columns, row))}\n`).join('')
    case 'csv':
      return [columns, ...rows].map((row) => `${row.map(toCsv).join(',')}\n`).join('')
    case 'table': {
      const limit = Math.min(maxCell, width)
      const cells = rows.map((row) => row.map((value) => cut(printable(toText(value).replaceAll(/\s+/gu, ' ')), limit)))
      return `${formatTable(columns, cells, { style: (cell, _, row) => (row < 0 ? paint(context, 'bold', cell) : cell) })}\n`
    }
  }
}

function toObject(columns: readonly string[], row: readonly unknown[]): Record<string, unknown> {
  return Object.fromEntries(columns.map((name, i) => [name, row[i] instanceof Uint8Array ? toText(row[i]) : row[i]]))
}

function toText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value as string | number)
}

function toCsv(value: unknown): string {
  const text = toText(value)
  return /[",\r\n]/u.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
