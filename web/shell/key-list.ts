/** The keys as the list shows them: each thing to do once, with every key for it. */
import type { KeyGroup } from './key-chords.ts'

export interface KeyLine {
  label: string
  chords: readonly string[]
}

export interface KeySection {
  name: string
  lines: readonly KeyLine[]
}

/** A key that a room has taken is not that of the page. */
export function keyList(groups: readonly KeyGroup[]): KeySection[] {
  const taken = new Set<string>()
  return groups.flatMap(({ name, keys }) => {
    const lines = new Map<string, string[]>()
    for (const [chord, { label }] of Object.entries(keys)) {
      if (taken.has(chord)) continue
      lines.set(label, [...(lines.get(label) ?? []), chord])
    }
    for (const chord of Object.keys(keys)) taken.add(chord)
    if (lines.size === 0) return []
    return [{ name, lines: [...lines].map(([label, chords]) => ({ label, chords })) }]
  })
}
