/** Narrows a reader of a run's entries to the options of `read`. */
import type { Entry } from '../part/entry.ts'
import type { ReadOptions } from '../part/log.ts'
import { isUnder } from '../part/path.ts'
import type { Pulled, Puller } from './follow.ts'

/** Applies all options but `after` to a reader that starts after it. Without them it is the reader itself. */
export function selectEntries(reader: Puller<Entry[]>, { before, limit, step, types }: ReadOptions): Puller<Entry[]> {
  if (before === undefined && limit === undefined && step === undefined && types === undefined) return reader
  const end = before ?? Infinity
  let left = limit ?? Infinity
  let done = left <= 0

  type Narrowed = Exclude<Pulled<Entry[]>, 'wait'>
  function narrow<P extends Pulled<Entry[]>>(pulled: P): Narrowed | Extract<P, 'wait'>
  function narrow(pulled: Pulled<Entry[]>): Pulled<Entry[]> {
    if (typeof pulled === 'string') return pulled
    let { value } = pulled
    const last = value.at(-1)!.seq
    done = pulled.last === true || last >= end - 1
    if (last >= end) value = value.filter(({ seq }) => seq < end)
    if (types !== undefined) value = value.filter(({ type }) => types.includes(type))
    if (step !== undefined) value = value.filter((entry) => isUnder(entry.step, step))
    if (value.length > left) value = value.slice(0, left)
    left -= value.length
    done ||= left === 0
    if (value.length === 0) return done ? 'end' : 'again'
    return { ...pulled, value, last: done }
  }

  return {
    ...reader,
    pull() {
      if (done) return 'end'
      const pulled = reader.pull()
      return pulled instanceof Promise ? pulled.then(narrow) : narrow(pulled)
    },
  }
}
