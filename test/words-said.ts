import type { Entry } from '../src/part/entry.ts'

/** Text and reasoning blocks of the answer that no later attempt supersedes. What an agent says inside a tool is none. */
export function wordsSaid(entries: readonly Entry[]): string[] {
  const answers = entries.flatMap((entry) => (entry.type === 'step-start' && entry.answer ? [`${entry.step}/`] : []))
  const tools = entries.flatMap((entry) =>
    entry.type === 'step-start' && entry.toolCallId !== undefined ? [`${entry.step}/`] : [],
  )
  const blocks = new Map<string, { step: string; text: string }>()
  for (const entry of entries) {
    if (entry.type === 'answer-end') break
    const isIn = (path: string) => entry.step.startsWith(path)
    const heard = answers.some(isIn) && !tools.some(isIn)
    if (heard && (entry.type === 'text-start' || entry.type === 'reasoning-start')) {
      blocks.set(entry.id, { step: entry.step, text: '' })
    }
    if (entry.type === 'text-delta' || entry.type === 'reasoning-delta') {
      const block = blocks.get(entry.id)
      if (block) block.text += entry.delta
    }
    if (entry.type === 'step-reset') {
      for (const [id, { step }] of blocks) if (step === entry.step) blocks.delete(id)
    }
    if (entry.type === 'run-end' && answers.length === 0 && typeof entry.output === 'string') return [entry.output]
  }
  return [...blocks.values()].map(({ text }) => text).sort()
}
