/** Reads the earlier runs of a thread: their messages, and the facts that their `memory` steps stored. */
import { keptOf } from '../fold/read-view.ts'
import { textOf } from '../fold/run-view.ts'
import type { Message } from '../part/message.ts'
import { runsOf } from '../part/principal.ts'
import type { Scope } from './scope.ts'

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

/** Maximum characters of messages to read, as JSON. */
const mostRead = 4_000_000
/** Characters of a text that are compared: texts with the same beginning count as equal. */
const longest = 4000

/** Reads at most `most` runs before this one, newest first. */
export async function readEarlier(
  { runId, threadId, store, state, signal, stored }: Scope,
  most: number,
): Promise<Earlier> {
  // The list starts at this run, so the run must be stored first.
  await stored()
  const mine = runsOf(state.start?.user)
  const facts = new Map<string, string>()
  const turns: EarlierTurn[] = []
  let left = mostRead
  for (const row of await store.runs.list({ threadId, before: runId, limit: most, ...mine })) {
    signal.throwIfAborted()
    if ((row.owner ?? mine.owner) !== mine.owner || (row.tenant ?? mine.tenant) !== mine.tenant) continue
    const storedView = await keptOf(store, row)
    if (storedView === undefined) continue
    const { asked, messages } = storedView
    left -= JSON.stringify(messages).length + JSON.stringify(asked).length
    if (left < 0) break
    for (const fact of storedView.facts) if (!facts.has(sameText(fact))) facts.set(sameText(fact), fact)
    const user = lastOfUser(asked)
    const assistant = messages.map(textOf).join('').slice(0, longest)
    if (user !== '' || assistant !== '') turns.push({ runId: row.id, at: row.startedAt, user, assistant })
  }
  return { facts: [...facts.values()], turns }
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
