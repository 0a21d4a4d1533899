/** An append, as a write of the commit queue. A class, because it is made for each delta: closures would be most of its garbage. */
import type { Entry } from '../part/entry.ts'
import type { MillraceError } from '../part/error.ts'
import type { Appended, KeptView } from '../part/log.ts'
import type { Write } from './commit-queue.ts'
import { encodeMessage } from './encode.ts'
import type { Ticks } from './sqlite-ticks.ts'

/** What `Log.append` is given. */
interface Given {
  run: string
  epoch: number
  entries: readonly Entry[] | (() => readonly Entry[])
  view: (() => KeptView | undefined) | undefined
}

export class AppendWrite implements Write {
  readonly yields: boolean
  readonly fail: (error: MillraceError) => void
  readonly #ticks: Ticks
  readonly #given: Given
  readonly #resolve: (appended: Appended) => void
  #entries: readonly Entry[] | undefined
  #lines: string | undefined
  #kept: { seq: number; text: string } | undefined
  #appended: Appended = 'stored'

  constructor(ticks: Ticks, given: Given, resolve: (appended: Appended) => void, fail: (error: MillraceError) => void) {
    this.yields = !ticks.knows(given.run)
    this.fail = fail
    this.#ticks = ticks
    this.#given = given
    this.#resolve = resolve
    // The caller may change its array later.
    this.#entries = typeof given.entries === 'function' ? undefined : [...given.entries]
    this.#lines = undefined
    this.#kept = undefined
  }

  apply(): void {
    const { run, epoch, entries } = this.#given
    // A write may be applied twice: call `entries` only once.
    this.#entries ??= typeof entries === 'function' ? entries() : entries
    this.#lines ??= this.#ticks.encode(run, this.#entries)
    if (this.#entries.length === 0) return
    this.#appended = this.#ticks.apply(run, epoch, this.#entries, this.#lines)
    if (this.#appended !== 'fenced') this.#keepView()
  }

  #keepView(): void {
    const { run, view } = this.#given
    const kept = this.#kept === undefined ? view?.() : undefined
    if (kept !== undefined) this.#kept = { seq: kept.seq, text: encodeMessage(run, 'view', kept.view) }
    if (this.#kept !== undefined) this.#ticks.keepView(run, this.#kept.seq, this.#kept.text)
  }

  done(): void {
    this.#resolve(this.#appended)
  }
}
