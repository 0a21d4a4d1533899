import { printable } from './printable.ts'
import { widthOf } from './width.ts'

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
