/** Estimates the usage of a model call that was cut off from its entries in the log, because the provider reports none. */
import type { Part } from '../part/part.ts'
import { isUnder } from '../part/path.ts'
import { loopMessages } from '../fold/turn-messages.ts'
import type { Turn, Turns } from '../fold/turns.ts'
import { estimateUsage, type Usage } from '../part/usage.ts'
import type { RunState } from './state.ts'

export function estimateTurn({ base, list }: Turns, turn: Turn): Usage {
  const told = [...(base?.messages ?? []), ...loopMessages(list.slice(0, list.indexOf(turn)))]
  const input = JSON.stringify(told).length + (base?.system?.length ?? 0)
  let output = 0
  for (const part of turn.content) {
    if (part.type === 'text' || part.type === 'reasoning') output += part.text.length
    else if (part.type === 'tool-call') output += JSON.stringify(part.input)?.length ?? 0
  }
  return estimateUsage(input, output)
}

/** The missing `usage` of a call. Undefined if it was reported, or if the call was never sent. */
export function missingUsage(turns: Turns, turn: Turn): Extract<Part, { type: 'usage' }> | undefined {
  if (turn.model === undefined || turn.usage !== undefined) return undefined
  return { type: 'usage', model: turn.model, usage: turn.finish?.usage ?? estimateTurn(turns, turn) }
}

/** The missing `usage` of every open call at or under a path, for when its step is closed from outside. */
export function missingUsages({ toolLoops, open }: RunState, root = ''): { step: string; part: Part }[] {
  return toolLoops().flatMap((turns) => {
    const turn = turns.list.at(-1)
    const part =
      turn !== undefined && open.steps.has(turn.path) && isUnder(turn.path, root)
        ? missingUsage(turns, turn)
        : undefined
    return part === undefined ? [] : [{ step: turn!.path, part }]
  })
}
