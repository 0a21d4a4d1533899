/** The names of long results: see `long-results.ts`. */
import type { EntryOf } from '../part/entry.ts'
import { messagesOf, type Message } from '../part/message.ts'

/** Characters. Results up to this length have no handle, and no shortened one is longer. */
export const smallResult = 4096

/**
 * The handle of a result: `res_<seq>` with the `seq` of its `tool-result` in the log of its run. The logs of a thread's later runs count from 1 as
 * well, so their handles end in a mark of the run. It is made from what a fork shares with its source.
 */
export function handleOf(seq: number, mark: string): string {
  return mark === '' ? `res_${seq}` : `res_${seq}_${mark}`
}

/** The reverse of {@link handleOf}. Undefined for any other text. */
export function parseHandle(handle: string): { seq: number; mark: string } | undefined {
  const [, seq, mark = ''] = /^res_(\d{1,15})(?:_([a-z0-9]+))?$/u.exec(handle) ?? []
  return seq === undefined ? undefined : { seq: Number(seq), mark }
}

/** Empty for a run that begins its conversation. */
export function markOfRun({ previousRunId, input, timestamp }: EntryOf<'run-start'>): string {
  const isFirst = previousRunId === undefined && messagesOf(input).every((message) => !isAnswer(message))
  return isFirst ? '' : timestamp.toString(36).slice(-6)
}

/** Not checked: an agent may have another input of that name. */
function isAnswer(message: Partial<Message> | null): boolean {
  return message?.role === 'assistant' || message?.role === 'tool'
}
