/**
 * What a run added to its conversation, as hashes, to find the run that a client's copy of the conversation ends with. A client has only what it was
 * sent: of an assistant's messages its texts and the calls for the client count, and neither thoughts nor the server's own calls.
 */
import { outcomeText } from '../../fold/open-items.ts'
import { keptOf, readInput } from '../../fold/read-view.ts'
import { hasEnded, type RunRow, type Store } from '../../part/log.ts'
import {
  messagesOf,
  splitInstructions,
  type AssistantContent,
  type FileContent,
  type Message,
  type TextContent,
} from '../../part/message.ts'
import { toOpenAiCallId } from '../../part/openai-call-id.ts'
import { textHash } from '../../part/text-hash.ts'
import { withoutReminders } from './reminders.ts'

/** The first messages of a conversation: how many have a key, and the hash of these keys. */
export interface Prefix {
  length: number
  hash: string
}

export interface RunKeys {
  run: string
  agent: string
  threadId: string
  /** The conversation up to the run's request. */
  asked: Prefix
  /** The conversation with the run's answer. */
  end: Prefix
  /** The key of the answer; undefined if a client has got nothing of it. */
  answer: string | undefined
  /** Calls that were handed over to the client: id → tool. */
  calls: ReadonlyMap<string, string>
}

const none: Prefix = { length: 0, hash: '' }

/**
 * `exact`: system messages and all texts of users count. `spoken`: neither system messages nor reminders count (`reminders.ts`), for clients that have
 * them in another form, or not at all, when they send the conversation again.
 */
export type Reading = 'exact' | 'spoken'

/** Maximum number of ended runs that are remembered for each store and reading. */
const mostKnown = 5000
const caches = { exact: new WeakMap<Store['runs'], Map<string, RunKeys>>(), spoken: new WeakMap() } satisfies Record<
  Reading,
  WeakMap<Store['runs'], Map<string, RunKeys>>
>

/** Undefined if the run, or one before it, cannot be read. */
export async function readRunKeys(store: Store, row: RunRow, reading: Reading): Promise<RunKeys | undefined> {
  const cache: WeakMap<Store['runs'], Map<string, RunKeys>> = caches[reading]
  const known = cache.get(store.runs) ?? new Map<string, RunKeys>()
  cache.set(store.runs, known)
  // From the run back to one that is known, or the first.
  const chain: RunRow[] = []
  const seen = new Set<string>()
  let before: RunKeys | undefined
  for (let at: RunRow | undefined = row; at !== undefined;) {
    before = known.get(at.id)
    if (before !== undefined) break
    if (seen.has(at.id)) return undefined
    seen.add(at.id)
    chain.push(at)
    const kept = await keptOf(store, at)
    if (kept === undefined) return undefined
    if (kept.previousRunId === undefined) break
    const previous: RunRow | undefined = await store.runs.get(kept.previousRunId)
    if (previous === undefined) return undefined
    at = previous
  }
  for (const each of chain.toReversed()) {
    before = await addRun(store, each, before, reading)
    if (before === undefined) return undefined
    if (!hasEnded(each.status)) continue
    known.set(each.id, before)
    for (const oldest of known.keys()) {
      if (known.size <= mostKnown) break
      known.delete(oldest)
    }
  }
  return before
}

async function addRun(
  store: Store,
  row: RunRow,
  before: RunKeys | undefined,
  reading: Reading,
): Promise<RunKeys | undefined> {
  const kept = await keptOf(store, row)
  if (kept === undefined) return undefined
  const given = messagesOf({ ...(await readInput(store.log, row.id)), ...kept.resumedInput })
  const asked = extend(
    before?.end ?? none,
    splitInstructions(given).rest.flatMap((message) => keysOf(message, reading)),
  )
  const forClient = new Set(kept.unanswered)
  const content = kept.messages.flatMap((message) => contentOf(message))
  const own = content.filter((part) => part.type !== 'tool-call' || forClient.has(part.toolCallId))
  const calls = new Map(own.flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part.toolName]] : [])))
  const answer = answerKey(own)
  const end = extend(asked, answer === undefined ? [] : [answer])
  return { run: row.id, agent: row.agent, threadId: row.threadId, asked, end, answer, calls }
}

/** The prefixes of a conversation with these messages. `at[n]`: with n keys. `messages[n]`: how many messages they are of. */
export function prefixesOf(keys: readonly (readonly string[])[]): { at: Prefix[]; messages: number[] } {
  const at: Prefix[] = [none]
  const messages: number[] = [0]
  for (const [i, own] of keys.entries()) {
    for (const key of own) {
      at.push(extend(at.at(-1)!, [key]))
      messages.push(i + 1)
    }
    // A message without a key goes with the one before it.
    messages[messages.length - 1] = i + 1
  }
  return { at, messages }
}

function extend(from: Prefix, keys: readonly string[]): Prefix {
  let { length, hash } = from
  for (const key of keys) {
    hash = textHash(`${hash}\n${key}`)
    length++
  }
  return { length, hash }
}

/** None for a message of which a client and the log have different forms. */
export function keysOf(message: Message, reading: Reading): string[] {
  switch (message.role) {
    case 'system':
      return reading === 'spoken' ? [] : [`s:${textHash(message.content)}`]
    case 'user':
      return [
        `u:${textHash(JSON.stringify(plainContent(reading === 'spoken' ? withoutReminders(message.content) : message.content)))}`,
      ]
    case 'tool':
      return message.content.flatMap(({ toolCallId, output }) => {
        const isMissing = output.type === 'error-text' && output.value === outcomeText.unavailable
        return isMissing ? [] : [`r:${textHash(JSON.stringify([toOpenAiCallId(toolCallId), output]))}`]
      })
    case 'assistant': {
      const key = answerKey(contentOf(message))
      return key === undefined ? [] : [key]
    }
  }
}

function contentOf({ role, content }: Message): AssistantContent[] {
  if (role !== 'assistant') return []
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function answerKey(content: readonly AssistantContent[]): string | undefined {
  const parts: unknown[] = []
  let text = ''
  const endText = () => {
    if (text !== '') parts.push(text)
    text = ''
  }
  for (const part of content) {
    if (part.type === 'text') text += part.text
    else if (part.type === 'tool-call') {
      endText()
      parts.push([toOpenAiCallId(part.toolCallId), part.toolName, part.input])
    }
  }
  endText()
  // A client may have only a form of an id.
  return parts.length === 0 ? undefined : `a:${textHash(JSON.stringify(parts))}`
}

function plainContent(content: string | readonly (TextContent | FileContent)[]): unknown[] {
  if (typeof content === 'string') return [content]
  return content.map((part) => (part.type === 'text' ? part.text : [part.mediaType, part.data, part.filename ?? '']))
}
