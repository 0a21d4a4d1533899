/** Shared by the generators of transcripts. */
import fc from 'fast-check'

export interface Transcript {
  lines: (object | string)[]
  /** The agent's own text. */
  text: string
  reasoning: string
  /** Calls of the agent and of its sub-agents. */
  calls: { id: string; name: string; input: unknown; output: unknown; isError: boolean }[]
  /** Lines that are no events. */
  output: string[]
}

export const text = fc.string({
  unit: fc.constantFrom('a', 'é', '水', '😀', '\n', '\r', '"', '\\', '\u2028', '{', '}'),
  maxLength: 6,
})

export const junk = fc.constantFrom('a banner', '{"type":"unheard-of"}', '{"cut', '[1]', '"x"', '{"type":5}', '\u0007!')

/** Several sequences, each in its own order. */
export function mixed<T>(sequences: readonly (readonly T[])[], picks: readonly number[]): T[] {
  const rest = sequences.map((each) => [...each])
  const all: T[] = []
  for (let n = 0; rest.some((each) => each.length > 0); n++) {
    const open = rest.filter((each) => each.length > 0)
    all.push(open[picks[n % picks.length]! % open.length]!.shift()!)
  }
  return all
}
