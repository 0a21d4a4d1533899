/** What of a log is its answer, to compare with what a wire's client got. */
import { createAnswering } from '../src/fold/answering.ts'
import type { Entry } from '../src/part/entry.ts'
import { createHeldText } from '../src/wire/held-text.ts'

/** The blocks of the answer in the log, up to its end. `isWhole`: no attempt was lost, and nobody was asked. */
export function answeredIn(entries: readonly Entry[]) {
  const answering = createAnswering()
  const held = createHeldText()
  const blocks = new Map<string, { type: string; text: string }>()
  let isWhole = true
  let isOver = false
  for (const given of entries) {
    for (const entry of held.take(given) ?? [given]) {
      if (entry.type === 'step-start') answering.note(entry)
      if (entry.type === 'step-reset' || entry.type === 'suspend') isWhole = false
      if (entry.type === 'tool-result' && entry.outcome === 'denied') isWhole = false
      if (entry.type === 'answer-end') isOver = true
      if (isOver || (entry.type !== 'text-delta' && entry.type !== 'reasoning-delta')) continue
      if (entry.delta === '' || !answering.has(entry.step)) continue
      const block = blocks.get(entry.id) ?? { type: entry.type, text: '' }
      block.text += entry.delta
      blocks.set(entry.id, block)
    }
  }
  if (!answering.started) isWhole = false
  const answered = (type: string) =>
    [...blocks.values()].flatMap((block) => (block.type === type ? [block.text] : [])).toSorted()
  return { answered, isWhole }
}
