/** What a model call was told, from the log. */
import type { EntryOf } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import { withShortened } from './long-results.ts'
import { loopMessages } from './reply-messages.ts'
import { markOfRun } from './result-handle.ts'
import { createToolLoop } from './tool-loop.ts'

/** The whole prompt of a model call: a `prompt` entry has only the new messages, the others come from earlier replies of its tool loop. */
export interface WholePrompt {
  /** The path of the model call, and the `seq` of its `prompt`. */
  step: string
  seq: number
  stage: string
  /** The model that was called first. */
  model: string
  system?: string
  messages: Message[]
  tools?: ToolSpec[]
}

/** The prompt of the last attempt. Undefined if the step has called no model; `asked` gets the paths of steps that have. */
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
  let mark: string | undefined
  for await (const [start] of log.read(run, { limit: 1 })) if (start?.type === 'run-start') mark = markOfRun(start)
  const loop = createToolLoop(root, mark)
  for await (const batch of log.read(run, { step: root, before: prompt.seq })) {
    for (const entry of batch) if (entry.step === root || parentPath(entry.step) === root) loop.apply(entry)
  }
  if (loop.base === undefined) return [...prompt.messages, ...loop.early]
  const told = [...loop.base.messages, ...loop.early, ...loopMessages(loop.list), ...prompt.messages]
  return withShortened(told, new Set([...loop.shortened, ...(prompt.shortened ?? [])]))
}
