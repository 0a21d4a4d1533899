/** Prints the result of a query. */
import type { CommandContext } from './context.ts'
import type { QueryResult } from '../part/records.ts'
import { printable } from './printable.ts'
import { formatTable } from './table.ts'
import { paint } from './style.ts'
import { cut } from './width.ts'

export type QueryFormat = 'table' | 'json' | 'csv' | 'ndjson'

/** Longest cell of a table, in columns of the terminal. */
const longest = 80

export function formatRows(
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
      const most = Math.min(longest, width)
      const cells = rows.map((row) => row.map((value) => cut(printable(toText(value).replaceAll(/\s+/gu, ' ')), most)))
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
