import type { EntryOf } from '../../part/entry.ts'
import { formatDuration } from '../terminal/format.ts'
import { textOf } from '../../fold/run-view.ts'

/** A message that was sent into a run, as one line. */
export function messageLine({ content, by, sentAt, timestamp, outcome }: EntryOf<'message'>): string {
  const words = textOf({ role: 'user', content })
  const sender = by === undefined ? '' : `${by.name ?? by.id}: `
  const waited = timestamp - sentAt
  const how =
    outcome === undefined
      ? waited >= 1000 && `told after ${formatDuration(waited)}`
      : { dropped: 'not delivered: the run was stopped', next: 'begins the next run', withdrawn: 'taken back' }[outcome]
  return `» ${sender}${words}${how === false ? '' : ` (${how})`}`
}
