/** A failure as lines of text: its message, and what was expected beside what came. */
import type { Failure } from './failure.ts'
import { diffLines, type DiffLine } from './text-diff.ts'

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
