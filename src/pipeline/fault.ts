import { MillraceError } from '../part/error.ts'
import type { Fault } from './pipeline.ts'

/** A YAML text that is no valid agent: code `bad-pipeline`, with every fault of the text, in the order of the text. */
export class PipelineError extends MillraceError {
  readonly faults: Fault[]

  /** `message`: the faults as lines, unless something else is told. */
  constructor(faults: Fault[], message = faults.map(formatFault).join('\n')) {
    super('bad-pipeline', message)
    this.faults = faults
  }
}

/** One `file:line:col message` line per fault, as editors and terminals make clickable. */
export function formatFaults(file: string, faults: readonly Fault[]): string {
  return faults.map((fault) => `${file}:${formatFault(fault)}`).join('\n')
}

/** Collects faults by their offset in the text. */
export interface FaultCollector {
  add(offset: number, message: string): void
  /** The line, from 1, that an offset lies in. */
  lineOf(offset: number): number
  /** All of them by place, each once. */
  list(): Fault[]
}

export function createFaultCollector(text: string): FaultCollector {
  const lineStarts = [0]
  for (const match of text.matchAll(/\r\n|\n|\r/g)) lineStarts.push(match.index + match[0].length)
  const found = new Map<string, { offset: number; message: string }>()

  function toFault({ offset, message }: { offset: number; message: string }): Fault {
    const line = lineAt(lineStarts, offset)
    return { line: line + 1, column: offset - lineStarts[line]! + 1, message }
  }

  return {
    add: (offset, message) => {
      // An anchored node is checked wherever it is used: the same fault at the same place counts once.
      found.set(`${offset} ${message}`, { offset, message })
    },
    lineOf: (offset) => lineAt(lineStarts, offset) + 1,
    list: () => [...found.values()].sort((a, b) => a.offset - b.offset).map(toFault),
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
