/** Columns that line up; the last one is never padded. Widths count code points. */
export function formatTable(head: string[], rows: string[][]): string {
  const all = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...all.map((row) => [...(row[column] ?? '')].length)))
  return all
    .map((row) =>
      row
        .map((cell, column) =>
          column === row.length - 1 ? cell : cell + ' '.repeat(widths[column]! - [...cell].length),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
