/** Formats results as a table: medians, and ratios to the reference row. */
import { median, type Result, type ResultRow } from './scenario.ts'

export function formatResult({ title, columns, rows, reference, notes }: Result): string {
  const base = rows.find(({ name, samples }) => name === reference && samples.length > 0)
  const heads = ['', ...columns.flatMap((column) => [column.title, ...(column.ratio ? ['×'] : [])])]
  const lines = rows.map((row) => [
    row.title,
    ...columns.flatMap(({ key, digits, ratio }) => {
      const value = medianOf(row, key)
      const shown =
        value === undefined
          ? '–'
          : value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
      const quotient = base && ratioOf(row, base, key)?.toFixed(2)
      return ratio ? [shown, quotient ?? '–'] : [shown]
    }),
  ])
  const widths = heads.map((head, i) => Math.max(head.length, ...lines.map((line) => line[i]!.length)))
  const aligned = [heads, ...lines].map((line) =>
    line
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  )
  const failures = rows.filter(({ failed }) => failed !== undefined).map((row) => `${row.title}: ${row.failed}`)
  const ratios =
    columns.some(({ ratio }) => ratio) && base !== undefined ? [`×: ratio to ${base.title}, median of the rounds`] : []
  return [title, '', ...aligned, '', ...ratios, ...notes, ...failures].join('\n').trimEnd()
}

export function medianOf({ samples }: ResultRow, key: string): number | undefined {
  const values = samples.map((sample) => sample[key]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

/** The median of the ratios to the reference, as measured at the same time. */
function ratioOf(row: ResultRow, base: ResultRow, key: string): number | undefined {
  const ratios = row.samples
    .map((sample, i) => (sample[key] ?? Number.NaN) / ((row.beside ?? base.samples)[i]?.[key] ?? Number.NaN))
    .filter((ratio) => Number.isFinite(ratio))
  return ratios.length === 0 ? undefined : median(ratios)
}
