/** Formats results as a table: medians, and ratios to the reference row. */
import type { Result, ResultRow } from './scenario.ts'
import { median, ratioOf, type Spread } from './schedule.ts'

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
      return ratio ? [shown, formatRatio(base && ratioOf(row, base.samples, key))] : [shown]
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
    columns.some(({ ratio }) => ratio) && base !== undefined
      ? [`×: ratio to ${base.title} in each round: the median, and the least and the greatest`]
      : []
  return [title, '', ...aligned, '', ...ratios, ...notes, ...failures].join('\n').trimEnd()
}

function formatRatio(ratio: Spread | undefined): string {
  if (ratio === undefined) return '–'
  const { median: middle, least, most } = ratio
  const [shown, ...ends] = [middle, least, most].map((value) => value.toFixed(2))
  return least === most ? shown! : `${shown} (${ends.join('–')})`
}

export function medianOf({ samples }: ResultRow, key: string): number | undefined {
  const values = samples.map((sample) => sample[key]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}
