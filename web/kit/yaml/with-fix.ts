import type { AgentFault } from '../../../src/part/agent-tree.ts'

/** The text with the word that the server proposes for the faulty one. */
export function withFix(text: string, { fix }: AgentFault): string {
  if (fix === undefined) return text
  const lines = text.split('\n')
  const line = lines[fix.line - 1]
  if (line === undefined) return text
  const at = fix.column - 1
  lines[fix.line - 1] = line.slice(0, at) + fix.text + line.slice(at + fix.length)
  return lines.join('\n')
}
