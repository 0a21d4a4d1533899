/** Where the server's faults stand in the text: from their column to the end of what is written there. */
import type { AgentFault } from '../../../src/part/agent-tree.ts'

export interface FaultPlace {
  from: number
  to: number
  severity: 'error'
  message: string
}

export function placesOfFaults(text: string, faults: readonly AgentFault[]): FaultPlace[] {
  const lines = text.split('\n')
  const starts: number[] = []
  let at = 0
  for (const line of lines) {
    starts.push(at)
    at += line.length + 1
  }
  return faults.map(({ line, column, message }) => {
    // The text may have become shorter since it was checked.
    const row = Math.min(Math.max(line, 1), lines.length) - 1
    const written = lines[row]!.trimEnd()
    const from = starts[row]! + Math.min(Math.max(column - 1, 0), written.length)
    return { from, to: Math.max(from, starts[row]! + written.length), severity: 'error', message }
  })
}
