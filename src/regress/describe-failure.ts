/** A failure as lines of text: its message, and the expected value beside the actual one. */
import type { Failure } from '../part/test-result.ts'

const longest = 2000

/** The lines below the message; empty if the message says all. */
export function compareLines({ expected, got }: Failure): DiffLine[] {
  if (got === undefined && expected === undefined) return []
  if (expected === undefined) return shown(got).map((text) => ({ sign: '+', text }))
  if (got === undefined) return shown(expected).map((text) => ({ sign: '-', text }))
  // "5" and 5 must not look the same.
  const show = typeof expected === 'string' && typeof got === 'string' ? textOf : jsonOf
  const found = diffLines(show(expected), show(got))
  if (found !== undefined) return found
  return [
    ...shown(expected).map((text): DiffLine => ({ sign: '-', text })),
    ...shown(got).map((text): DiffLine => ({ sign: '+', text })),
  ]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? shorten(value) : jsonOf(value)
}

function jsonOf(value: unknown): string {
  return shorten(JSON.stringify(value, null, 2))
}

function shorten(text: string): string {
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}

function shown(value: unknown): string[] {
  return textOf(value).split('\n')
}

/** For reports without colours. */
export function describeFailure(failure: Failure): string {
  const lines = compareLines(failure).map(({ sign, text }) => `  ${sign} ${text}`.trimEnd())
  return [`${failure.what}: ${failure.message}`, ...lines].join('\n')
}

/** Two texts line by line: lines of the first only (`-`), lines of the second only (`+`), and common lines. */
interface DiffLine {
  sign: '-' | '+' | ' '
  text: string
}

/** More lines than this are not compared: the work is the product of both counts. */
const most = 500

/** Undefined for texts that are too long to compare. */
function diffLines(before: string, after: string): DiffLine[] | undefined {
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
