/** Reads the earlier runs of a thread: their messages, and the facts that their `memory` steps stored. */
import { isDelta, type Entry } from '../part/entry.ts'
import { createRunFold } from '../fold/run-fold.ts'
import { textOf } from '../fold/run-view.ts'
import type { Message } from '../part/message.ts'
import type { Scope } from './scope.ts'
import { messagesOf } from '../part/message.ts'
import { kindOf } from '../part/step-kind.ts'

export interface EarlierTurn {
  runId: string
  /** Epoch ms. */
  at: number
  user: string
  assistant: string
}

export interface Earlier {
  /** Without duplicates, newest first. */
  facts: string[]
  /** Newest first. */
  turns: EarlierTurn[]
}

/** Most characters of entries to read: about as many bytes of a log. */
const mostRead = 4_000_000
/** Characters of a delta's entry, without the delta. */
const entryWeight = 200
/** Characters of a text that are compared: texts with the same beginning count as equal. */
const longest = 4000

/** Reads at most `most` runs before this one, newest first. */
export async function readEarlier({ runId, threadId, store, signal, stored }: Scope, most: number): Promise<Earlier> {
  // The list starts at this run, so the run must be stored first.
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

/** Collects the facts of a run from the results of its steps, newest first. */
function createFacts() {
  const steps = new Set<string>()
  const list: string[] = []
  return {
    list,
    apply(entry: Entry) {
      if (entry.type === 'step-start' && kindOf(entry) === 'memory') steps.add(entry.step)
      if (entry.type !== 'step-finish' || !steps.has(entry.step)) return
      const { stored } = (entry.result ?? {}) as { stored?: unknown }
      if (Array.isArray(stored)) list.unshift(...stored.map(String))
    },
  }
}

export function lastOfUser(messages: readonly Message[]): string {
  return textIn(messages.findLast(({ role }) => role === 'user'))
}

/** The text of an unchecked message, up to the compared length. */
export function textIn(message: Message | undefined): string {
  const { content } = message ?? {}
  if (message === undefined || (typeof content !== 'string' && !Array.isArray(content))) return ''
  return textOf(message).trim().slice(0, longest)
}

/** A key that is equal for texts which differ only in case, spaces, and punctuation at either end. */
export function sameText(text: string): string {
  const words = text.normalize('NFKC').toLowerCase().replaceAll(/\s+/gu, ' ')
  // A single regular expression would take quadratic time on a text full of punctuation.
  let end = words.length
  while (end > 0 && isMark(words[end - 1]!)) end--
  let start = 0
  while (start < end && isMark(words[start]!)) start++
  return words.slice(start, end)
}

function isMark(sign: string): boolean {
  return ' .!?…'.includes(sign)
}
