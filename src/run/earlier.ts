/** What the earlier runs of a thread hold: what was said in them, and the facts that their `memory` steps kept. */
import { isDelta, type Entry } from '../part/entry.ts'
import { createRunFold, textOf } from '../part/fold.ts'
import type { Message } from '../part/message.ts'
import type { Scope } from './scope.ts'
import { messagesOf } from './history.ts'

export interface EarlierTurn {
  runId: string
  /** Epoch ms. */
  at: number
  user: string
  assistant: string
}

export interface Earlier {
  /** Each once, the newest first. */
  facts: string[]
  /** The newest first. */
  turns: EarlierTurn[]
}

/** Characters of entries that are read at most: about as many bytes of a log. */
const mostRead = 4_000_000
/** What a delta's entry weighs beside its delta. */
const entryWeight = 200
/** Characters of a text that are looked at: what is alike so far is taken for the same. */
const longest = 4000

/** Reads at most `most` runs before this one, the newest first. Nothing in a thread of one run. */
export async function readEarlier({ runId, threadId, store, signal, stored }: Scope, most: number): Promise<Earlier> {
  // The list is read behind this run, so it has to be in it.
  await stored()
  const facts = new Map<string, string>()
  const turns: EarlierTurn[] = []
  let left = mostRead
  for (const { id, startedAt } of await store.runs.list({ threadId, before: runId, limit: most })) {
    const fold = createRunFold()
    const kept = createFacts()
    for await (const batch of store.log.read(id)) {
      signal.throwIfAborted()
      for (const entry of batch) {
        left -= isDelta(entry) ? entryWeight + entry.delta.length : JSON.stringify(entry).length
        fold.apply(entry)
        kept.apply(entry)
      }
      if (left < 0) return { facts: [...facts.values()], turns }
    }
    for (const fact of kept.list) if (!facts.has(sameText(fact))) facts.set(sameText(fact), fact)
    const { input, text } = fold.view()
    const user = lastOfUser(messagesOf(input))
    if (user !== '' || text !== '') turns.push({ runId: id, at: startedAt, user, assistant: text.slice(0, longest) })
  }
  return { facts: [...facts.values()], turns }
}

/** The facts of a run are results of its steps: the newest first. */
function createFacts() {
  const steps = new Set<string>()
  const list: string[] = []
  return {
    list,
    apply(entry: Entry) {
      if (entry.type === 'step-start' && entry.stepType === 'memory') steps.add(entry.step)
      if (entry.type !== 'step-finish' || !steps.has(entry.step)) return
      const { stored } = (entry.result ?? {}) as { stored?: unknown }
      if (Array.isArray(stored)) list.unshift(...stored.map(String))
    },
  }
}

export function lastOfUser(messages: readonly Message[]): string {
  return textIn(messages.findLast(({ role }) => role === 'user'))
}

/** The text of a message that nobody has checked, as far as it is looked at. */
export function textIn(message: Message | undefined): string {
  const { content } = message ?? {}
  if (message === undefined || (typeof content !== 'string' && !Array.isArray(content))) return ''
  return textOf(message).trim().slice(0, longest)
}

/** Texts that say the same but for case, spaces and the mark at their end have the same one. */
export function sameText(text: string): string {
  const words = text.normalize('NFKC').toLowerCase().replaceAll(/\s+/gu, ' ')
  // Not by one expression: it would begin anew at every mark of a text that is full of them.
  let end = words.length
  while (end > 0 && isMark(words[end - 1]!)) end--
  let start = 0
  while (start < end && isMark(words[start]!)) start++
  return words.slice(start, end)
}

function isMark(sign: string): boolean {
  return ' .!?…'.includes(sign)
}
