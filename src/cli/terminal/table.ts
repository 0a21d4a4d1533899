/** Text in columns of a terminal: East Asian wide characters and emoji take two, combining marks none. */
import { printable } from './output.ts'

export interface TableOptions {
  /** Called with the padded cell, so that colours do not affect widths. `row` is -1 for the head. */
  style?: (cell: string, column: number, row: number) => string
}

/** Aligns columns by display width; the last one is not padded. Cells are made printable and put on one line. */
export function formatTable(head: string[], rows: string[][], { style = (cell) => cell }: TableOptions = {}): string {
  const all = [head, ...rows].map((row) => row.map((cell) => printable(cell.replaceAll(/[\n\r\t]+/gu, ' '))))
  const widths = columnWidths(all)
  return all
    .map((row, i) => {
      // No trailing spaces where the last cells are empty.
      const end = row.findLastIndex((cell) => cell !== '')
      return row
        .slice(0, end + 1)
        .map((cell, column) => {
          const padded = column === end ? cell : cell + ' '.repeat(widths[column]! - widthOf(cell))
          return style(padded, column, i - 1)
        })
        .join('  ')
    })
    .join('\n')
}

export function columnWidths(rows: string[][]): number[] {
  return rows[0]!.map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ''))))
}

/** Made when it is first needed: that takes a noticeable part of a start. */
let clusters: Intl.Segmenter | undefined

/** An escape sequence counts like text: printed text has none, see `printable`. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/u.test(text)) return text.length
  // Its tables take a quarter of the time of a short command.
  const { createRequire } = process.getBuiltinModule('node:module')
  const { default: stringWidth } = createRequire(import.meta.url)('string-width') as typeof import('string-width')
  return stringWidth(text, { countAnsiEscapeCodes: true })
}

/** The text if it fits, else its beginning and `…`. */
export function cut(text: string, columns: number): string {
  // Bounds the work for very long texts: except for combining marks, a character takes at least one column.
  const looked = text.slice(0, columns * 20)
  if (looked.length === text.length && widthOf(text) <= columns) return text
  clusters ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })
  let shown = ''
  let left = columns - 1
  for (const { segment } of clusters.segment(looked)) {
    left -= widthOf(segment)
    if (left < 0) break
    shown += segment
  }
  return `${shown}…`
}
