export interface TableOptions {
  /** Called with a cell that has its width already: colours must not count. `row` is -1 for the head. */
  style?: (cell: string, column: number, row: number) => string
}

/** Columns that line up; the last one is never padded. Widths count code points. */
export function formatTable(head: string[], rows: string[][], { style = (cell) => cell }: TableOptions = {}): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => [...(row[column] ?? '')].length)))
  return all
    .map((row, i) => {
      // What is empty to the end of a line leaves no blanks there.
      const end = row.findLastIndex((cell) => cell !== '')
      return row
        .slice(0, end + 1)
        .map((cell, column) => {
          const padded = column === end ? cell : cell + ' '.repeat(widths[column]! - [...cell].length)
          return style(padded, column, i - 1)
        })
        .join('  ')
    })
    .join('\n')
}
