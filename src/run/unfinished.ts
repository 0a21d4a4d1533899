/** What a model call that was cut off has cost: nobody reports it, so it is guessed from what the log holds of it. */
import type { Part } from '../part/part.ts'
import { isUnder } from '../part/path.ts'
import { loopMessages } from '../part/turn-messages.ts'
import type { Turn, Turns } from '../part/turns.ts'
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

/** The missing `usage` of a call, or nothing: it was told, or the call had not been sent. */
export function missingUsage(turns: Turns, turn: Turn): Extract<Part, { type: 'usage' }> | undefined {
  if (turn.model === undefined || turn.usage !== undefined) return undefined
  return { type: 'usage', model: turn.model, usage: turn.finish?.usage ?? estimateTurn(turns, turn) }
}

/** For every call at or under a path that is open when its step is ended over its head. */
export function missingUsages({ loops, open }: RunState, root = ''): { step: string; part: Part }[] {
  return [...loops()].flatMap((turns) => {
    const turn = turns.list.at(-1)
    const part =
      turn !== undefined && open.steps.has(turn.path) && isUnder(turn.path, root)
        ? missingUsage(turns, turn)
        : undefined
    return part === undefined ? [] : [{ step: turn!.path, part }]
  })
}
