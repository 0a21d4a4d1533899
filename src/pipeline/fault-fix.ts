/** What an editor can put in place of a word that a fault suggests another one for. */
import type { AgentFault } from '../part/agent-tree.ts'
import type { Fault } from './pipeline.ts'

const suggestion = /"([^"]+)" \(did you mean "([^"]+)"\?\)/u

export function withFix(text: string, fault: Fault): AgentFault {
  const [, wrong, meant] = suggestion.exec(fault.message) ?? []
  if (wrong === undefined || meant === undefined) return fault
  const line = text.split(/\r\n|\n|\r/u, fault.line).at(-1)!
  const at = line.indexOf(wrong, fault.column - 1)
  return at < 0 ? fault : { ...fault, fix: { line: fault.line, column: at + 1, length: wrong.length, text: meant } }
}
