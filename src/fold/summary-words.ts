import type { EntryOf } from '../part/entry.ts'
import { grouped } from '../part/grouped.ts'

const why: Record<EntryOf<'summarized'>['reason'], string> = {
  full: 'the window was nearly full',
  overflow: 'the provider refused the prompt',
  earlier: 'an earlier run of the thread has made it',
}

/** `12 messages in fewer words: about 24,000 → 6,100 tokens; the window was nearly full` */
export function summaryWords({
  upTo,
  text,
  before,
  after,
  reason,
}: Pick<EntryOf<'summarized'>, 'upTo' | 'text' | 'before' | 'after' | 'reason'>): string {
  const what = `${upTo} ${upTo === 1 ? 'message' : 'messages'} ${text === undefined ? 'left out' : 'in fewer words'}`
  return `${what}: about ${grouped(before)} → ${grouped(after)} tokens; ${why[reason]}`
}
