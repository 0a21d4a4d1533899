/**
 * Values that many entries repeat are stored once: the messages of a conversation, system prompts, tools, pipelines. The line of an entry has `null`
 * in their places, and a last field `shared` that names the values. decisions/0035 has the reasons and the sizes.
 *
 * `shared` has the names of the entry's fields; the value of each is
 * - a string: the hash of the field's JSON;
 * - a list, for messages: each item is a message, the hash of one, or the hash of a list of such items;
 * - an object, for `input`: the same for its fields.
 *
 * A list is a tree whose nodes are cut where a hash says so (content-defined chunking). So a conversation that grows by a turn, or whose first
 * messages are left out, has nearly all of its nodes in common with the one before, wherever that was stored.
 */
import { hash } from 'node:crypto'
import type { Entry } from '../part/entry.ts'
import { ownValue } from '../part/own-value.ts'

/** Shorter values stay in the entry. Characters of JSON. */
const shortestValue = 1024
const shortestMessage = 256
/** A list up to this length is not cut. */
const mostItems = 24
/** Minimum and maximum items of a node. One of 16 hashes ends a node. */
const leastInNode = 4
const mostInNode = 64
const endsNode = 'AQgw'

type Item = string | object
type Places = { [field: string]: string | Item[] | Places }

/** A text to store. `parts`: for a list, the hashes in it. */
export interface SharedText {
  text(): string
  parts: readonly string[] | undefined
}

/** The references of entries. `texts` has each text that `roots` needs, directly or through lists. */
export interface SharedTexts {
  roots: Set<string>
  texts: Map<string, SharedText>
  /** Lists up to this length stay in the entry. */
  wholeLists: number
}

export function createSharedTexts({ wholeLists = 0 } = {}): SharedTexts {
  return { roots: new Set(), texts: new Map(), wholeLists }
}

/** The entry to store, and in `found` the texts that it refers to. Returns the same entry if it repeats nothing. */
export function shareTexts(entry: Entry, found: SharedTexts): Entry {
  let places: Places | undefined
  try {
    places = placesOf(entry, found)
  } catch {
    // A value that is no JSON is refused, with its place, when the entry is encoded.
    return entry
  }
  if (places === undefined) return 'shared' in entry && isSharing(entry) ? without(entry) : entry
  const stored: Record<string, unknown> = { ...without(entry) }
  for (const [field, place] of Object.entries(places)) define(stored, field, blank(ownValue(stored, field), place))
  return { ...stored, shared: places } as unknown as Entry
}

/** Nobody else's field may stand where ours is read. */
function without(entry: Entry): Entry {
  const { shared: _, ...rest } = entry as Entry & { shared?: unknown }
  return rest as Entry
}

/** Whether entries of this type may refer to texts. */
export function isSharing({ type }: Pick<Entry, 'type'>): boolean {
  return type === 'run-start' || type === 'prompt' || type === 'step-start' || type === 'resume'
}

function blank(value: unknown, place: Places[string]): unknown {
  if (typeof place === 'string' || Array.isArray(place)) return null
  const copy = { ...(value as Record<string, unknown>) }
  for (const [field, each] of Object.entries(place)) define(copy, field, blank(ownValue(copy, field), each))
  return copy
}

function placesOf(entry: Entry, found: SharedTexts): Places | undefined {
  switch (entry.type) {
    case 'run-start':
    case 'resume':
      return named({ pipeline: valuePlace(entry.pipeline, found), input: inputPlaces(entry.input, found) })
    case 'step-start':
      return entry.pipeline === undefined ? undefined : named({ pipeline: valuePlace(entry.pipeline, found) })
    case 'prompt': {
      const { system, messages, tools } = entry
      return named({
        system: valuePlace(system, found),
        messages: listPlace(messages, found),
        tools: valuePlace(tools, found),
      })
    }
    default:
      return undefined
  }
}

function inputPlaces(input: Record<string, unknown> | undefined, found: SharedTexts): Places | undefined {
  if (typeof input !== 'object' || input === null) return undefined
  const places = Object.entries(input).map(([name, value]) => {
    return [name, name === 'messages' ? listPlace(value, found) : valuePlace(value, found)] as const
  })
  // As own fields: `__proto__` is a name like any other.
  return named(Object.fromEntries(places))
}

function named(places: Record<string, Places[string] | undefined>): Places | undefined {
  const entries = Object.entries(places).filter(([, place]) => place !== undefined)
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Places)
}

function valuePlace(value: unknown, found: SharedTexts): string | undefined {
  if (typeof value === 'string' ? value.length < shortestValue : typeof value !== 'object') return undefined
  const text = JSON.stringify(value)
  if (text === undefined || text.length < shortestValue) return undefined
  const name = hash('sha256', text, 'base64url')
  found.texts.set(name, { text: () => text, parts: undefined })
  found.roots.add(name)
  return name
}

function listPlace(value: unknown, found: SharedTexts): string | Item[] | undefined {
  if (!Array.isArray(value)) return valuePlace(value, found)
  // Hashes stand for messages, so a list with other texts is a value.
  if (!value.every((item) => typeof item === 'object' && item !== null && !Array.isArray(item))) {
    return valuePlace(value, found)
  }
  if (value.length <= found.wholeLists) return undefined
  const items = (value as object[]).map((message) => itemOf(message, found))
  const list = toTree(items, found).map(({ item }) => item)
  const hashes = list.filter((item) => typeof item === 'string')
  if (hashes.length === 0) return undefined
  for (const each of hashes) found.roots.add(each)
  return list
}

interface HashedItem {
  item: Item
  hash: string
}

/** Messages of a conversation are the same objects in each of its turns, and never changed. */
const hashed = new WeakMap<object, HashedItem>()

function itemOf(message: object, { texts }: SharedTexts): HashedItem {
  let item = hashed.get(message)
  if (item === undefined) {
    const text = JSON.stringify(message)
    const name = hash('sha256', text, 'base64url')
    item = { item: text.length < shortestMessage ? message : name, hash: name }
    hashed.set(message, item)
  }
  if (typeof item.item === 'string') texts.set(item.hash, { text: () => JSON.stringify(message), parts: undefined })
  return item
}

function toTree(items: HashedItem[], found: SharedTexts): HashedItem[] {
  if (items.length <= mostItems) return items
  const nodes: HashedItem[] = []
  let open: HashedItem[] = []
  for (const each of items) {
    open.push(each)
    const isEnd = open.length >= leastInNode && endsNode.includes(each.hash[0]!)
    if (!isEnd && open.length < mostInNode) continue
    nodes.push(nodeOf(open, found))
    open = []
  }
  // The last node grows with the next turn: it is not one yet.
  return nodes.length === 0 ? open : [...toTree(nodes, found), ...open]
}

function nodeOf(items: HashedItem[], { texts }: SharedTexts): HashedItem {
  const text = JSON.stringify(items.map(({ item }) => item))
  // A value may have the JSON of a list.
  const name = hash('sha256', `list ${text}`, 'base64url')
  const parts = items.flatMap(({ item }) => (typeof item === 'string' ? item : []))
  texts.set(name, { text: () => text, parts })
  return { item: name, hash: name }
}

/** Finds a stored text by its hash. */
export type FindText = (hash: string) => { text: string; isList: boolean } | undefined

/** Deeper trees are made by nobody. */
export const deepest = 8
/** Characters of a list: a few stored texts can name others so often that they are more than any memory holds. */
const longestList = 256 * 1024 * 1024

/**
 * The entry of a stored one. Of a text that is missing `null` is left, which no entry has in such a place: it is then an entry that cannot be read.
 */
export function restoreTexts(stored: unknown, find: FindText): unknown {
  if (typeof stored !== 'object' || stored === null || !('shared' in stored)) return stored
  const { shared, ...entry } = stored as Entry & { shared: unknown }
  if (!isSharing(entry as Entry) || typeof shared !== 'object' || shared === null) return stored
  return fill(entry, shared as Places, find)
}

/** The same for readers that need only the model of a prompt: its texts are left out, because they may be the whole conversation. */
export function restoreWithoutPrompt(stored: unknown, find: FindText): unknown {
  const { type, shared } = (stored ?? {}) as { type?: unknown; shared?: unknown }
  if (type !== 'prompt' || shared === undefined) return restoreTexts(stored, find)
  const { system: _, tools: __, shared: ___, ...entry } = stored as Record<string, unknown>
  return { ...entry, messages: [] }
}

/** The texts that a stored entry refers to itself: not those in its lists. */
export function textsIn(stored: unknown): string[] {
  const { type, shared } = (stored ?? {}) as { type?: Entry['type']; shared?: unknown }
  return type !== undefined && isSharing({ type }) ? hashesIn(shared) : []
}

function hashesIn(place: unknown): string[] {
  if (typeof place === 'string') return [place]
  if (typeof place !== 'object' || place === null) return []
  // The objects in a list are messages.
  if (Array.isArray(place)) return place.filter((item) => typeof item === 'string')
  return Object.values(place).flatMap(hashesIn)
}

/** Whether a stored line may refer to texts. */
export function hasShared(line: string): boolean {
  return line.includes(',"shared":{')
}

const sharing =
  /^\{"seq":\d+,"timestamp":[\d.]+,"step":"(?:[^"\\]|\\.)*","type":"(?:run-start|prompt|step-start|resume)"/u

/** Whether a stored line of an older version has texts that it could share. */
export function mayShare(line: string): boolean {
  return line.length >= shortestMessage && sharing.test(line.slice(0, 4096)) && !hasShared(line)
}

function fill(value: unknown, places: Places, find: FindText): Record<string, unknown> {
  const filled = { ...(value as Record<string, unknown>) }
  for (const [field, place] of Object.entries(places)) {
    define(filled, field, restored(ownValue(filled, field), place, find))
  }
  return filled
}

/** Not an assignment, because a name may be `__proto__`. */
function define(object: object, field: string, value: unknown): void {
  Object.defineProperty(object, field, { value, enumerable: true, writable: true, configurable: true })
}

function restored(given: unknown, place: Places[string], find: FindText): unknown {
  if (typeof place === 'string') {
    const found = find(place)
    return found === undefined || found.isList ? null : JSON.parse(found.text)
  }
  if (!Array.isArray(place)) return fill(given, place, find)
  const texts: string[] = []
  return addItems(place, find, texts, { left: longestList }, 0) ? JSON.parse(`[${texts.join(',')}]`) : null
}

/** Returns whether everything was found. */
function addItems(items: readonly unknown[], find: FindText, texts: string[], room: { left: number }, depth: number) {
  if (depth > deepest) return false
  for (const item of items) {
    if (typeof item !== 'string') {
      texts.push(JSON.stringify(item))
      continue
    }
    const found = find(item)
    if (found === undefined || (room.left -= found.text.length) < 0) return false
    if (!found.isList) texts.push(found.text)
    else if (!addItems(JSON.parse(found.text) as unknown[], find, texts, room, depth + 1)) return false
  }
  return true
}
