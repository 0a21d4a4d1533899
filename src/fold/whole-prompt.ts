/** The whole prompt of a model call: a `prompt` entry has only what is new, the rest are the turns before it in its tool loop. */
import type { EntryOf } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import { loopMessages } from './reply-messages.ts'
import { createToolLoop } from './tool-loop.ts'

export interface WholePrompt {
  /** The path of the model call, and the `seq` of its `prompt`. */
  step: string
  seq: number
  stage: string
  /** The model that was asked first. */
  model: string
  system?: string
  messages: Message[]
  tools?: ToolSpec[]
}

/** Of the last attempt. Undefined if the step has asked no model; `asked` gets the paths of those that have. */
export async function readPrompt(
  log: Log,
  run: string,
  step: string,
  asked: Set<string> = new Set(),
): Promise<WholePrompt | undefined> {
  let prompt: EntryOf<'prompt'> | undefined
  let isCall = false
  for await (const batch of log.read(run, { types: ['step-start', 'prompt'] })) {
    for (const entry of batch) {
      if (entry.type === 'prompt') asked.add(entry.step)
      if (entry.step !== step) continue
      if (entry.type === 'prompt') prompt = entry
      else if (entry.type === 'step-start') isCall = kindOf(entry) === 'model-call'
    }
  }
  if (prompt === undefined) return undefined
  const { seq, stage, model, system, tools } = prompt
  const before = isCall ? await messagesBefore(log, run, prompt) : prompt.messages
  return {
    step,
    seq,
    stage,
    model,
    ...(system !== undefined && { system }),
    messages: before,
    ...(tools !== undefined && { tools }),
  }
}

async function messagesBefore(log: Log, run: string, prompt: EntryOf<'prompt'>): Promise<Message[]> {
  const root = parentPath(prompt.step)
  const loop = createToolLoop(root)
  for await (const batch of log.read(run, { step: root, before: prompt.seq })) {
    for (const entry of batch) if (entry.step === root || parentPath(entry.step) === root) loop.apply(entry)
  }
  return [...(loop.base?.messages ?? []), ...loopMessages(loop.list), ...prompt.messages]
}
