/**
 * YAML text → a tree with the place of every node and the style of every scalar.
 *
 * js-yaml's own loader drops positions, so the tree is built from its event stream. The schema is FAILSAFE: maps, lists
 * and strings, no other tags. Size, depth and the expansion of aliases are limited here, so that code that walks the tree
 * needs no limits of its own.
 */
import { EVENT_ID, FAILSAFE_SCHEMA, SCALAR_STYLE, YAMLException, getScalarValue, parseEvents } from 'js-yaml'
import type { Event, ScalarEvent } from 'js-yaml'
import type { FaultCollector } from './fault.ts'

/** `at` is the offset of the node's first character; `size` and `height` include expanded aliases. */
interface NodeBase {
  at: number
  size: number
  height: number
}
/** `plain`: written without quotes, so in a template it may be a number, a boolean or null. */
type ScalarNode = NodeBase & {
  kind: 'scalar'
  text: string
  plain: boolean
  /** The offset after it. */
  end: number
  /** The prompt file that its text comes from, if any. */
  file?: string
}
type ListNode = NodeBase & { kind: 'list'; items: Node[] }
export type MapNode = NodeBase & { kind: 'map'; entries: Map<string, { at: number; value: Node }> }
export type Node = ScalarNode | ListNode | MapNode

const maxCharacters = 1_000_000
const maxNodes = 100_000
const maxDepth = 100

const allowedTags = new Set(FAILSAFE_SCHEMA.tags.map(({ tagName }) => tagName.replace('tag:yaml.org,2002:', '!!')))
const tagOf = { scalar: '!!str', list: '!!seq', map: '!!map' } as const

/** Returns undefined if nothing is left to check; the reasons are in `faults`. */
export function parseTree(text: string, faults: FaultCollector): Node | undefined {
  if (text.length > maxCharacters) {
    faults.add(0, `the file is larger than 1 MB (${text.length} characters); shorten it`)
    return undefined
  }
  try {
    return buildTree(text, parseEvents(text, { maxDepth }), faults)
  } catch (error) {
    if (error instanceof TooLarge) faults.add(error.at, error.message)
    else if (error instanceof YAMLException) faults.add(error.mark?.position ?? 0, explain(error.reason))
    else throw error
    return undefined
  }
}

type Key = { text: string; at: number; unusable?: true }
type YamlFrame = { node: ListNode | MapNode; anchor?: string; key?: Key }

class TooLarge extends Error {
  readonly at: number
  constructor(at: number, message: string) {
    super(message)
    this.at = at
  }
}

function buildTree(text: string, events: readonly Event[], faults: FaultCollector): Node | undefined {
  const frames: YamlFrame[] = []
  const anchors = new Map<string, Node>()
  let root: Node | undefined
  let documents = 0
  let end = 0

  function checkProperties(event: Exclude<Event, { type: 1 | 5 | 6 }>, kind: Node['kind']): void {
    if (event.tagStart < 0) return
    const tag = text.slice(event.tagStart, event.tagEnd)
    if (tag === '!' || tag === tagOf[kind]) return
    const reason = allowedTags.has(tag) ? `does not match ${nameOf(kind)}` : 'is not allowed'
    faults.add(event.tagStart, `the tag ${tag} ${reason}; remove it`)
  }

  function add(node: Node, anchor?: string): void {
    if (anchor !== undefined) anchors.set(anchor, node)
    const frame = frames.at(-1)
    if (frame === undefined) {
      root = node
      return
    }
    const parent = frame.node
    parent.size += node.size
    parent.height = Math.max(parent.height, node.height + 1)
    // Counted without expanding: a few hundred bytes of aliases can expand to billions of nodes.
    if (parent.size > maxNodes)
      throw new TooLarge(node.at, `the file has more than ${maxNodes} values, counting aliases`)
    if (parent.height + frames.length > maxDepth) throw new TooLarge(node.at, `nested deeper than ${maxDepth} levels`)
    if (parent.kind === 'list') parent.items.push(node)
    else if (frame.key === undefined) frame.key = toKey(node)
    else {
      setEntry(parent, frame.key, node)
      delete frame.key
    }
  }

  function toKey(node: Node): Key {
    if (node.kind === 'scalar') return node
    faults.add(node.at, `a key must be a name, not ${nameOf(node.kind)}; quote it if it contains { or [`)
    return { text: '', at: node.at, unusable: true }
  }

  function setEntry(map: MapNode, key: Key, value: Node): void {
    if (key.unusable) return
    if (key.text === '__proto__') faults.add(key.at, 'the key "__proto__" is not allowed; use another name')
    else if (key.text === '<<') faults.add(key.at, 'merge keys (<<) are not supported; write the keys out')
    else if (map.entries.has(key.text)) faults.add(key.at, `duplicate key "${key.text}"; remove one of the two`)
    else map.entries.set(key.text, { at: key.at, value })
  }

  /** Where a scalar visibly starts: at its quote, its `|` or, if it is empty, at its key or dash. */
  function scalarAt(event: ScalarEvent): number {
    if (event.valueStart < 0) return frames.at(-1)?.key?.at ?? afterBlanks(text, end)
    if (event.style === SCALAR_STYLE.PLAIN) return event.valueStart
    if (isQuoted(event)) return event.valueStart - 1
    const header = text.slice(end).search(/[|>]/)
    return header < 0 ? event.valueStart : end + header
  }

  for (const event of events) {
    switch (event.type) {
      case EVENT_ID.DOCUMENT:
        if (++documents > 1) {
          faults.add(afterBlanks(text, end), 'a file holds only one agent; remove this second document (---)')
          return root
        }
        if (event.directives.some(({ kind }) => kind === 'tag')) faults.add(0, '%TAG is not allowed; remove it')
        break
      case EVENT_ID.SCALAR: {
        checkProperties(event, 'scalar')
        const plain = event.style === SCALAR_STYLE.PLAIN && event.tagStart < 0
        const value = getScalarValue(text, event)
        const at = scalarAt(event)
        if (event.valueEnd >= 0) end = event.valueEnd + (isQuoted(event) ? 1 : 0)
        add({ kind: 'scalar', text: value, plain, at, end, size: 1, height: 1 }, anchorOf(text, event))
        break
      }
      case EVENT_ID.SEQUENCE:
      case EVENT_ID.MAPPING: {
        const base = { at: event.start, size: 1, height: 1 }
        const node: ListNode | MapNode =
          event.type === EVENT_ID.SEQUENCE
            ? { kind: 'list', items: [], ...base }
            : { kind: 'map', entries: new Map(), ...base }
        checkProperties(event, node.kind)
        const anchor = anchorOf(text, event)
        // An anchor is undefined until its node is closed, so a value can never contain itself.
        if (anchor !== undefined) anchors.delete(anchor)
        frames.push(anchor === undefined ? { node } : { node, anchor })
        end = event.start
        break
      }
      case EVENT_ID.ALIAS: {
        const name = text.slice(event.anchorStart, event.anchorEnd)
        const target = anchors.get(name)
        const at = event.anchorStart - 1
        if (target === undefined) faults.add(at, `unknown alias *${name}; define it on an earlier value with &${name}`)
        add(target ?? { kind: 'scalar', text: '', plain: true, at, end: event.anchorEnd, size: 1, height: 1 })
        end = event.anchorEnd
        break
      }
      case EVENT_ID.POP: {
        const frame = frames.pop()
        if (frame) add(frame.node, frame.anchor)
        break
      }
      default:
        event satisfies never
    }
  }
  return root
}

function isQuoted({ style }: ScalarEvent): boolean {
  return style === SCALAR_STYLE.SINGLE_QUOTED || style === SCALAR_STYLE.DOUBLE_QUOTED
}

function anchorOf(text: string, event: Exclude<Event, { type: 1 | 5 | 6 }>): string | undefined {
  return event.anchorStart < 0 ? undefined : text.slice(event.anchorStart, event.anchorEnd)
}

function afterBlanks(text: string, offset: number): number {
  const blanks = /(?:[\s:,\]}]|#[^\n\r]*)*/y
  blanks.lastIndex = offset
  blanks.exec(text)
  return Math.min(blanks.lastIndex, Math.max(0, text.length - 1))
}

function nameOf(kind: Node['kind']): string {
  return { scalar: 'a string', list: 'a list', map: 'a map' }[kind]
}

/** The message of js-yaml, with the cure if it lacks one. */
function explain(reason: string): string {
  if (reason.includes('tab characters')) return `${reason}; use spaces`
  if (reason.startsWith('bad indentation'))
    return `${reason}; align it with its neighbours, or quote a string that contains ": "`
  if (reason.startsWith('nesting exceeded')) return `nested deeper than ${maxDepth} levels`
  if (reason.startsWith('undeclared tag handle')) return `${reason}; tags are not allowed, remove it`
  return `YAML: ${reason}`
}
