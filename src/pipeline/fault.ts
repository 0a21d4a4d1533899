import { messageOf, MillraceError } from '../part/error.ts'
import { lazily } from './lazily.ts'
import { didYouMean, type Hint } from './nearest.ts'
import type { Fault } from './pipeline.ts'
import type { AgentFault } from '../part/agent-tree.ts'

/** An invalid agent: code `bad-pipeline`, with every fault of the text, in text order. */
export class PipelineError extends MillraceError {
  readonly faults: Fault[]

  /** `message` defaults to one line per fault. */
  constructor(faults: Fault[], message = faults.map(formatFault).join('\n')) {
    super('bad-pipeline', message)
    this.faults = faults
  }
}

/**
 * Converts anything thrown while reading a text to faults of that text: a file that crashes the parser must not hide or block
 * other files.
 */
export function faultsOf(error: unknown): Fault[] {
  if (error instanceof PipelineError) return error.faults
  const message = `Millrace failed to read this file, which is a bug: ${messageOf(error)}. Please report it with the file`
  return [{ line: 1, column: 1, message }]
}

/** One `file:line:col message` line per fault, which editors and terminals make clickable. */
export function formatFaults(file: string, faults: readonly Fault[]): string {
  return faults.map((fault) => `${file}:${formatFault(fault)}`).join('\n')
}

/** Maximum number of faults reported in full: a file with more usually repeats one mistake. */
export const mostFaults = 100

/**
 * Collects faults by their offset in the text: the first {@link mostFaults}, and the number of others. A message with a
 * suggestion is a function of `hint`, which is expensive and therefore called only for reported faults.
 */
export interface FaultCollector {
  add(offset: number, message: string | ((hint: Hint) => string)): void
  /** The line of an offset, from 1. */
  lineOf(offset: number): number
  /** All faults in text order, without duplicates. */
  list(): Fault[]
}

export function createFaultCollector(text: string): FaultCollector {
  /** Only a text with faults needs them. */
  const lineStarts = lazily(() => [
    0,
    ...[...text.matchAll(/\r\n|\n|\r/g)].map(({ index, 0: end }) => index + end.length),
  ])
  const found = new Map<string, { offset: number; message: string }>()
  const unreported = new Set<number>()

  function toFault({ offset, message }: { offset: number; message: string }): Fault {
    const line = lineAt(lineStarts(), offset)
    return { line: line + 1, column: offset - lineStarts()[line]! + 1, message }
  }

  function rest(): Fault[] {
    if (unreported.size === 0) return []
    const offset = [...unreported].reduce((first, each) => Math.min(first, each))
    const places = unreported.size === 1 ? 'place' : 'places'
    const message = `… and errors at ${unreported.size} more ${places}; fix the ones above first`
    return [{ ...toFault({ offset, message }), more: unreported.size }]
  }

  return {
    add: (offset, message) => {
      // A node with an anchor is checked at every alias: the same fault at the same place counts once.
      const id = `${offset} ${typeof message === 'string' ? message : message(() => '')}`
      if (found.has(id)) return
      if (found.size >= mostFaults) unreported.add(offset)
      else found.set(id, { offset, message: typeof message === 'string' ? message : message(didYouMean) })
    },
    lineOf: (offset) => lineAt(lineStarts(), offset) + 1,
    list: () => [...[...found.values()].sort((a, b) => a.offset - b.offset).map(toFault), ...rest()],
  }
}

function lineAt(starts: readonly number[], offset: number): number {
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (starts[middle]! <= offset) low = middle
    else high = middle - 1
  }
  return low
}

function formatFault({ line, column, message }: Fault): string {
  return `${line}:${column} ${message}`
}

/** The replacement for a misspelt word, for editors. */
const suggestion = /"([^"]+)" \(did you mean "([^"]+)"\?\)/u

export function withFix(text: string, fault: Fault): AgentFault {
  const [, wrong, meant] = suggestion.exec(fault.message) ?? []
  if (wrong === undefined || meant === undefined) return fault
  const line = text.split(/\r\n|\n|\r/u, fault.line).at(-1)!
  const at = line.indexOf(wrong, fault.column - 1)
  return at < 0 ? fault : { ...fault, fix: { line: fault.line, column: at + 1, length: wrong.length, text: meant } }
}
