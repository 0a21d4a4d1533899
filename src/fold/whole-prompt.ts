/**
 * What a model is told: the one place in which a conversation becomes the messages of a prompt. The log has all of it; a summary stands in place of
 * what it covers, and long results may be shortened.
 */
import type { EntryOf } from '../part/entry.ts'
import type { Log } from '../part/log.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import type { CallSettings } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import { withShortened } from './long-results.ts'
import { loopMessages } from './reply-messages.ts'
import { markOfRun } from './result-handle.ts'
import { createToolLoop, type ToolLoop } from './tool-loop.ts'

/** Of a `summarized` entry. */
export type Covered = Pick<EntryOf<'summarized'>, 'upTo' | 'text'>

/** The leading system messages, and the first message of the user with what is before it: told whatever is covered. */
export function headOf(messages: readonly Message[], upTo: number): Message[] {
  const first = messages.findIndex(({ role }) => role === 'user')
  return messages.slice(0, upTo).filter(({ role }, i) => i === first || (role === 'system' && (first < 0 || i < first)))
}

/** The messages as a model is told them behind a summary. */
export function withSummary(messages: readonly Message[], covered: Covered | undefined): Message[] {
  if (covered === undefined || covered.upTo === 0) return messages as Message[]
  const { upTo, text } = covered
  const told = text === undefined ? [] : [toSummaryMessage(text)]
  return [...headOf(messages, upTo), ...told, ...messages.slice(upTo)]
}

export function toSummaryMessage(text: string): Message {
  const what =
    'The conversation is longer than what you can be told. This is what happened between the message before and the ones after:'
  return { role: 'user', content: `${what}\n\n${text}` }
}

/** What of a loop decides what its model is told. */
export type ToldLoop = Pick<ToolLoop, 'base' | 'early' | 'list' | 'shortened' | 'summary'>

/** All messages of a loop's conversation, nothing left out. `first`: those that it begins with, as long as the log has none. */
export function conversationIn(
  loop: Pick<ToolLoop, 'base' | 'early' | 'list'>,
  first: readonly Message[],
  naming?: 'named',
): Message[] {
  return [...(loop.base?.messages ?? first), ...loop.early, ...loopMessages(loop.list, naming)]
}

/** The messages that the next call of a loop is told. */
export function toldMessages(loop: ToldLoop, first: readonly Message[], naming?: 'named'): Message[] {
  return withShortened(withSummary(conversationIn(loop, first, naming), loop.summary?.entry), loop.shortened)
}

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
  settings?: CallSettings
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
  const { seq, stage, model, system, tools, settings } = prompt
  const before = isCall ? await messagesBefore(log, run, prompt) : prompt.messages
  return {
    step,
    seq,
    stage,
    model,
    ...(system !== undefined && { system }),
    messages: before,
    ...(tools !== undefined && { tools }),
    ...(settings !== undefined && { settings }),
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
  const isFirst = loop.base === undefined
  loop.apply(prompt)
  const said = isFirst ? [] : prompt.messages
  const all = [...conversationIn(loop, prompt.messages), ...said]
  const covered = (await summaryDuring(log, run, prompt)) ?? loop.summary?.entry
  return withShortened(withSummary(all, covered), new Set([...loop.shortened, ...(covered?.shortened ?? [])]))
}

/** A call that was refused because its prompt was too long is told the summary that was made for it. */
async function summaryDuring(
  log: Log,
  run: string,
  { step, seq }: EntryOf<'prompt'>,
): Promise<EntryOf<'summarized'> | undefined> {
  let found: EntryOf<'summarized'> | undefined
  for await (const batch of log.read(run, { step: parentPath(step), after: seq, types: [...endings] })) {
    for (const entry of batch) {
      if (entry.type === 'summarized' && entry.step === parentPath(step)) found = entry
      else if (entry.step === step && entry.type !== 'summarized') return found
    }
  }
  return found
}

const endings = ['summarized', 'step-finish', 'step-reset'] as const
