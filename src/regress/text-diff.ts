/** Two texts line by line: what only the first has (`-`), what only the second has (`+`), and what both have. */
export interface DiffLine {
  sign: '-' | '+' | ' '
  text: string
}

/** More lines than this are not compared: the work is the product of both counts. */
const most = 500

/** Undefined for texts that are too long to compare. */
export function diffLines(before: string, after: string): DiffLine[] | undefined {
  const [a, b] = [before.split('\n'), after.split('\n')]
  if (a.length > most || b.length > most) return undefined
  // The length of the longest common sequence of the lines from (i, j) on.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!)
    }
  }
  const lines: DiffLine[] = []
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: ' ', text: a[i]! })
      i++
      j++
    } else if (j >= b.length || (i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!)) {
      lines.push({ sign: '-', text: a[i++]! })
    } else lines.push({ sign: '+', text: b[j++]! })
  }
  return lines
}
