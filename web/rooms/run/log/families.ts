/** Types of entries that readers choose together. */
import type { Entry } from '../../../../src/part/entry.ts'

export const families: readonly { name: string; types: readonly Entry['type'][] }[] = [
  { name: 'Text', types: ['text-start', 'text-delta', 'text-end'] },
  { name: 'Reasoning', types: ['reasoning-start', 'reasoning-delta', 'reasoning-end'] },
  {
    name: 'Tools',
    types: [
      'tool-input-start',
      'tool-input-delta',
      'tool-input-end',
      'tool-call',
      'tool-result',
      'tool-approval-request',
    ],
  },
  { name: 'Steps', types: ['run-start', 'step-start', 'step-finish', 'step-reset', 'answer-end', 'run-end'] },
  {
    name: 'Model',
    types: ['prompt', 'stream-start', 'response-metadata', 'finish', 'usage', 'source', 'file', 'raw', 'summarized'],
  },
  { name: 'Requests', types: ['request', 'response', 'message', 'suspend', 'resume'] },
  { name: 'Errors', types: ['error', 'retry', 'warning'] },
]

export function readTypes(text: string | undefined): ReadonlySet<string> | undefined {
  const types = (text ?? '').split(',').filter(Boolean)
  return types.length === 0 ? undefined : new Set(types)
}

/** The types after a family was turned on or off; undefined: all. */
export function toggleFamily(chosen: ReadonlySet<string> | undefined, types: readonly string[]): string | undefined {
  const next = new Set(chosen)
  const isOn = types.every((type) => next.has(type))
  for (const type of types) {
    if (isOn) next.delete(type)
    else next.add(type)
  }
  return next.size === 0 ? undefined : [...next].join(',')
}
