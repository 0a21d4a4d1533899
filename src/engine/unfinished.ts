/** Estimates the usage of a model call that was cut off from its entries in the log, because the provider reports none. */
import type { Part } from '../part/part.ts'
import { isUnder } from '../part/path.ts'
import { loopMessages } from '../fold/reply-messages.ts'
import type { Reply } from '../fold/reply.ts'
import type { ToolLoop } from '../fold/tool-loop.ts'
import { estimateUsage, type Usage } from '../part/usage.ts'
import type { RunState } from './state.ts'

export function estimateReply({ base, list }: ToolLoop, reply: Reply): Usage {
  const sent = [...(base?.messages ?? []), ...loopMessages(list.slice(0, list.indexOf(reply)))]
  const input = JSON.stringify(sent).length + (base?.system?.length ?? 0)
  let output = 0
  for (const part of reply.content) {
    if (part.type === 'text' || part.type === 'reasoning') output += part.text.length
    else if (part.type === 'tool-call') output += JSON.stringify(part.input)?.length ?? 0
  }
  return estimateUsage(input, output)
}

/** The missing `usage` of a call. Undefined if it was reported, or if the call was never sent. */
export function missingUsage(loop: ToolLoop, reply: Reply): Extract<Part, { type: 'usage' }> | undefined {
  if (reply.model === undefined || reply.usage !== undefined) return undefined
  return { type: 'usage', model: reply.model, usage: reply.finish?.usage ?? estimateReply(loop, reply) }
}

/** The missing `usage` of every open call at or under a path, for when its step is closed from outside. */
export function missingUsages(state: RunState, root = ''): { step: string; part: Part }[] {
  const { open } = state
  return state.toolLoops().flatMap((loop) => {
    const reply = loop.list.at(-1)
    const part =
      reply !== undefined && open.steps.has(reply.path) && isUnder(reply.path, root)
        ? missingUsage(loop, reply)
        : undefined
    return part === undefined ? [] : [{ step: reply!.path, part }]
  })
}
