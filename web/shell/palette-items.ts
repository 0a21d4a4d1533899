/** What the palette finds. */
export interface PaletteItem {
  /** Unlike any other. */
  id: string
  group: 'Go to' | 'Agents' | 'Runs' | 'Threads' | 'Do' | 'Search'
  label: string
  /** Small words behind the label; found too. */
  hint?: string
  href?: string
  /** What its keys do, shown while it is chosen. */
  keys?: string
  /** Where Shift+Enter leads. */
  other?: string
  run?(): void
}

/** The items that hold every word, those whose label begins with the words first. The order is otherwise kept. */
export function matchItems(items: readonly PaletteItem[], query: string, most = 50): PaletteItem[] {
  const words = query.toLowerCase().split(/\s+/u).filter(Boolean)
  if (words.length === 0) return items.slice(0, most)
  return items
    .map((item) => ({ item, rank: rankOf(item, words) }))
    .filter(({ rank }) => rank > 0)
    .sort((a, b) => b.rank - a.rank)
    .slice(0, most)
    .map(({ item }) => item)
}

function rankOf({ label, hint = '', group }: PaletteItem, words: readonly string[]): number {
  const name = label.toLowerCase()
  const all = `${name} ${hint.toLowerCase()} ${group.toLowerCase()}`
  if (!words.every((word) => all.includes(word))) return 0
  if (name.startsWith(words.join(' '))) return 3
  return words.every((word) => name.includes(word)) ? 2 : 1
}

/** A run or thread whose id was pasted, with or without what stands around it in a URL. */
export function pastedId(query: string): { kind: 'run' | 'thread'; id: string } | undefined {
  const [, kind, rest] = /(?:^|[\s/])(run|thread)_([\w-]{6,200})(?=$|[\s/?#])/u.exec(query) ?? []
  return rest === undefined ? undefined : { kind: kind as 'run' | 'thread', id: `${kind}_${rest}` }
}
