/** Rows of `ticks` that this process has written and that have only deltas. Most do, and the tables need not read them. */
export interface DeltaRow {
  id: number
  run: string
  firstSeq: number
  lastSeq: number
}

/** Maximum number of remembered rows. Beyond it the tables lag far behind, and read the file. */
const most = 100_000

/** Columns, because the tables may lag thousands of rows behind: that many objects would outlive the young generation. */
export class DeltaRows {
  /** In ascending order. */
  #ids: number[] = []
  #runs: string[] = []
  #firstSeqs: number[] = []
  #lastSeqs: number[] = []
  #next = 0

  /** Call this for each row after its commit. */
  wrote({ id, run, firstSeq, lastSeq }: DeltaRow, hasOnlyDeltas: boolean): void {
    const last = this.#ids.at(-1)
    if (this.#ids.length === most) this.#dropPassed()
    // An older version on the same file reuses the id of a deleted row.
    if (last !== undefined && (id <= last || this.#ids.length === most)) this.clear()
    if (!hasOnlyDeltas) return
    this.#ids.push(id)
    this.#runs.push(run)
    this.#firstSeqs.push(firstSeq)
    this.#lastSeqs.push(lastSeq)
  }

  /** The row with this id, if it is known. Ask in ascending order. */
  at(id: number): DeltaRow | undefined {
    const ids = this.#ids
    while (this.#next < ids.length && ids[this.#next]! < id) this.#next++
    const i = this.#next
    if (i === ids.length) this.clear()
    if (ids[i] !== id) return undefined
    return { id, run: this.#runs[i]!, firstSeq: this.#firstSeqs[i]!, lastSeq: this.#lastSeqs[i]! }
  }

  /** Call this when another process may have changed the table. */
  clear(): void {
    if (this.#ids.length === 0) return
    this.#next = this.#ids.length
    this.#dropPassed()
  }

  #dropPassed(): void {
    for (const column of [this.#ids, this.#runs, this.#firstSeqs, this.#lastSeqs]) column.splice(0, this.#next)
    this.#next = 0
  }
}
