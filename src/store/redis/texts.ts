/**
 * Texts that entries share (`shared-texts.ts`), in the partition of the run that refers to them, so that one script stores both. This process
 * remembers which ones a partition has, and does not send them again.
 */
import type { Entry } from '../../part/entry.ts'
import type { Restore } from '../encode.ts'
import {
  createSharedTexts,
  deepest,
  hasShared,
  isSharing,
  restoreTexts,
  shareTexts,
  textsIn,
  type FindText,
  type SharedTexts,
} from '../shared-texts.ts'
import type { RedisConnection } from './connection.ts'
import { partitions } from './index-script.ts'
import { partitionOf, type Partition } from './keys.ts'
import { listed } from './script.ts'

/** The stored form of lines that share texts. */
export interface SharedLines {
  lines: string
  /** The arguments for `takeTexts`. */
  args: string[]
  hashes: string[]
}

export interface RestoredTexts {
  restore: Restore
  /** Whether each text was found. A missing one may have been deleted with its run. */
  isWhole: boolean
  /** Characters. */
  length: number
}

/** The result of a script that has stored nothing, because a text is missing that was not sent. */
export const textMissing = 2

/** Number of hashes that are remembered for each partition. */
const mostKnown = 2000
/** Number of texts in one request. */
const mostAsked = 500
/** Lists up to this length stay in their entries: in a short thread, each text would be used once in its partition. */
const wholeLists = 24
/** What begins a stored text: the number of its uses. */
const countLength = 10

export type RedisTexts = ReturnType<typeof createTexts>

export function createTexts({ keys, ask, layout }: RedisConnection) {
  /** Hashes that the partition has had, those used last at the end. */
  const known = Array.from({ length: partitions }, () => new Set<string>())

  function remember(partition: Partition, hashes: readonly string[]): void {
    const set = known[partition]!
    for (const hash of hashes) {
      set.delete(hash)
      set.add(hash)
    }
    for (const hash of set) {
      if (set.size <= mostKnown) break
      set.delete(hash)
    }
  }

  async function textsOf(what: string, partition: Partition, hashes: readonly string[]): Promise<(string | null)[]> {
    const found: (string | null)[] = []
    for (let i = 0; i < hashes.length; i += mostAsked) {
      const names = hashes.slice(i, i + mostAsked).map((hash) => `${keys.tag(partition)}:text:${hash}`)
      found.push(...((await ask(what, names[0]!, ['MGET', ...names])) as (string | null)[]))
    }
    return found
  }

  return {
    /**
     * The stored form of entries, of which each has a line. Undefined if they share nothing. `all`: with the texts that the partition should have
     * already.
     */
    share(run: string, entries: readonly Entry[], lines: string, { all = false } = {}): SharedLines | undefined {
      if (!layout.sharesTexts || !entries.some(isSharing)) return undefined
      const shared = createSharedTexts({ wholeLists })
      const stored = storedLines(entries, lines, shared)
      if (shared.roots.size === 0) return undefined
      const args = argsOf(shared, all ? undefined : known[partitionOf(run)])
      return { lines: stored, args, hashes: [...shared.texts.keys()] }
    },
    /** For a write in pages, of which the last one stores the texts of all. */
    collect() {
      const shared = createSharedTexts({ wholeLists })
      return {
        /** The stored form of the lines of a page. */
        add: (entries: readonly Entry[], lines: string) =>
          layout.sharesTexts ? storedLines(entries, lines, shared) : lines,
        /** The arguments for `takeTexts`; none if nothing is shared. */
        args: () => (shared.roots.size === 0 ? [] : argsOf(shared, undefined)),
      }
    },
    /** The partition of the run has these now. */
    stored: (run: string, { hashes }: SharedLines): void => remember(partitionOf(run), hashes),
    /** It does not have one of these. */
    missing(run: string, { hashes }: SharedLines): void {
      for (const hash of hashes) known[partitionOf(run)]!.delete(hash)
    },
    /** Fetches the texts of stored lines. `what` completes “cannot …”. */
    async restorer(what: string, partition: Partition, texts: readonly string[]): Promise<RestoredTexts> {
      const found = new Map<string, ReturnType<FindText>>()
      let [wanted, length, isWhole] = [hashesOf(texts), 0, true]
      for (let depth = 0; wanted.size > 0 && depth <= deepest + 1; depth++) {
        const hashes = [...wanted]
        wanted = new Set()
        for (const [i, stored] of (await textsOf(what, partition, hashes)).entries()) {
          const text = stored?.slice(countLength + 1)
          const isList = stored?.[countLength] === 'l'
          found.set(hashes[i]!, text === undefined ? undefined : { text, isList })
          isWhole &&= text !== undefined
          length += text?.length ?? 0
          if (isList) for (const part of partsOf(text!)) wanted.add(part)
        }
        for (const hash of wanted) if (found.has(hash)) wanted.delete(hash)
      }
      const find: FindText = (hash) => found.get(hash)
      return { restore: (stored) => restoreTexts(stored, find), isWhole, length }
    },
  }
}

function storedLines(entries: readonly Entry[], lines: string, shared: SharedTexts): string {
  if (!entries.some(isSharing)) return lines
  const each = lines.split('\n')
  for (const [i, entry] of entries.entries()) {
    if (!isSharing(entry)) continue
    const stored = shareTexts(entry, shared)
    if (stored !== entry) each[i] = JSON.stringify(stored)
  }
  return each.join('\n')
}

/** Of texts that are in `stored` nothing is sent. */
function argsOf({ roots, texts }: SharedTexts, stored: ReadonlySet<string> | undefined): string[] {
  const sent: string[] = []
  const seen = new Set<string>()
  function add(hash: string): void {
    if (seen.has(hash) || stored?.has(hash) === true) return
    seen.add(hash)
    const { text, parts } = texts.get(hash)!
    for (const part of parts ?? []) add(part)
    sent.push(hash, (parts === undefined ? 'v' : 'l') + text())
  }
  for (const hash of roots) add(hash)
  return [...listed([...roots]), String(sent.length / 2), ...sent]
}

function hashesOf(texts: readonly string[]): Set<string> {
  const hashes = new Set<string>()
  for (const text of texts) {
    if (!hasShared(text)) continue
    for (const line of text.split('\n')) {
      if (hasShared(line)) for (const hash of textsIn(parsed(line))) hashes.add(hash)
    }
  }
  return hashes
}

function partsOf(list: string): string[] {
  const items = parsed(list)
  return Array.isArray(items) ? items.filter((item) => typeof item === 'string') : []
}

/** Undefined for what is damaged: whoever reads the entry says so. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
