/**
 * `memory`: recalls earlier turns of the thread and stores facts for later ones. Its only state is the log: stored facts are
 * the step's result, which is not sent to clients, and `recall` collects the results of earlier runs.
 */
import type { MemoryConfig } from '../../pipeline/pipeline.ts'
import { lastOfUser, readEarlier, sameText, textIn, type EarlierTurn } from '../earlier.ts'
import { messagesOf } from '../../part/message.ts'
import { mostRelevant } from '../relevance.ts'
import type { Scope } from '../scope.ts'

/** The value of `result` after a `memory` step with `action: recall`. */
export interface Recalled {
  /** At most `limit`: the best matches first, then the newest. */
  facts: string[]
  /** At most `limit`, best match first. Each side is cut to 2,000 characters. */
  turns: EarlierTurn[]
  /** Facts and turns as text for a `system` prompt; empty if there are none. */
  text: string
}

/** The value of `result` after a `memory` step with `action: store`. */
export interface StoredFacts {
  /** The new facts: at most 50, each cut to 1,000 characters. */
  stored: string[]
}

const mostFacts = 50
const longestFact = 1000
const longestSide = 2000
const longestLine = 500
const longestQuery = 4000

/** Replaces the references in a template. */
type Resolve = (value: unknown) => unknown

export async function runMemory(scope: Scope, config: MemoryConfig, at: Resolve): Promise<Recalled | StoredFacts> {
  return config.action === 'recall' ? recall(scope, config, at) : store(scope, config, at)
}

async function recall(scope: Scope, { query, limit, runs }: MemoryConfig, at: Resolve): Promise<Recalled> {
  const messages = messagesOf(scope.input)
  const earlier = await readEarlier(scope, runs)
  // Skip messages that the conversation already contains.
  const ids = new Set(messages.map(({ id }) => id))
  const known = new Set(messages.map((message) => sameText(textIn(message))))
  const wanted = cut(toWords(at(query) ?? lastOfUser(messages)), longestQuery)
  const facts = earlier.facts.filter((fact) => !known.has(sameText(fact)))
  const fitting = mostRelevant(facts, (fact) => fact, wanted, limit)
  const isKnown = ({ runId, user, assistant }: EarlierTurn) =>
    ids.has(runId) || [user, assistant].every((side) => side === '' || known.has(sameText(side)))
  const turns = earlier.turns.filter((turn) => !isKnown(turn))
  const found = {
    facts: [...new Set([...fitting, ...facts])].slice(0, limit),
    turns: mostRelevant(turns, ({ user, assistant }) => `${user}\n${assistant}`, wanted, limit).map((turn) => ({
      ...turn,
      user: cut(turn.user, longestSide),
      assistant: cut(turn.assistant, longestSide),
    })),
  }
  return { ...found, text: toText(found) }
}

async function store(scope: Scope, { facts, runs }: MemoryConfig, at: Resolve): Promise<StoredFacts> {
  const given = facts === undefined ? lastOfUser(messagesOf(scope.input)) : at(facts)
  const known = new Set((await readEarlier(scope, runs)).facts.map(sameText))
  const stored: string[] = []
  for (const value of Array.isArray(given) ? given : [given]) {
    const fact = cut(toWords(value).trim(), longestFact)
    const same = sameText(fact)
    if (same === '' || known.has(same) || stored.length === mostFacts) continue
    known.add(same)
    stored.push(fact)
  }
  return { stored }
}

function toWords(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function toText({ facts, turns }: Omit<Recalled, 'text'>): string {
  const said = turns.map(({ user, assistant }) => `- User: ${line(user)}\n  Assistant: ${line(assistant)}`)
  const blocks = [
    facts.length > 0 && `Known from earlier:\n${facts.map((fact) => `- ${line(fact)}`).join('\n')}`,
    said.length > 0 && `Said earlier in this conversation:\n${said.join('\n')}`,
  ]
  return blocks.filter(Boolean).join('\n\n')
}

function line(text: string): string {
  return cut(text.replaceAll(/\s+/gu, ' '), longestLine)
}

/** Never splits a surrogate pair. */
function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/u, '')}…`
}
