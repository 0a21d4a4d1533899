/** What AG-UI has no event for, as CUSTOM and RAW. */
import { compact } from '../../part/compact.ts'
import type { Entry, EntryOf } from '../../part/entry.ts'
import type { AgUiEvent } from './ag-ui-event.ts'

type Extra = 'source' | 'file' | 'reasoning-file' | 'custom' | 'cli-output'

/** A part of the answer. */
export function toExtra(entry: Extract<Entry, { type: Extra }>): AgUiEvent {
  if (entry.type === 'cli-output') {
    const { stream, raw } = entry
    return { type: 'RAW', event: { stream, raw }, source: 'cli' }
  }
  const { type: name, seq: _, timestamp: __, step: ___, ...value } = entry
  return { type: 'CUSTOM', name, value: compact(value) }
}

/** An event of a step. */
export function toCustom({ name, id, data, transient }: EntryOf<'data'>): AgUiEvent {
  const isMarked = id !== undefined || transient !== undefined
  const metadata = isMarked ? compact({ id, transient }) : undefined
  // `value` must be there: null is what JSON has for nothing.
  return { type: 'CUSTOM', name, value: data ?? null, metadata }
}
