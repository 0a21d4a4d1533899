import { printable } from './printable.ts'
import { widthOf } from './width.ts'

export interface TableOptions {
  /** Called with a cell that has its width already: colours must not count. `row` is -1 for the head. */
  style?: (cell: string, column: number, row: number) => string
}

/** Columns that line up on a terminal; the last one is never padded. A cell is one line, and no command to the terminal. */
export function formatTable(head: string[], rows: string[][], { style = (cell) => cell }: TableOptions = {}): string {
  const all = [head, ...rows].map((row) => row.map((cell) => printable(cell.replaceAll(/[\n\r\t]+/gu, ' '))))
  const widths = columnWidths(all)
  return all
    .map((row, i) => {
      // What is empty to the end of a line leaves no blanks there.
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
