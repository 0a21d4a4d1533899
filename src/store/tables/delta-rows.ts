/** Rows of `ticks` that this process has written and that have nothing but deltas. Most are, and the tables need not read them. */
export interface DeltaRow {
  id: number
  run: string
  firstSeq: number
  lastSeq: number
}

/** More are forgotten: the tables are far behind, and read the file. */
const most = 10_000

export class DeltaRows {
  /** In the order of their ids. */
  #rows: DeltaRow[] = []
  #next = 0

  /** Call this for each row after its commit. */
  wrote(row: DeltaRow, hasOnlyDeltas: boolean): void {
    const last = this.#rows.at(-1)
    // The id of a deleted row is given again.
    if (last !== undefined && (row.id <= last.id || this.#rows.length === most)) this.clear()
    if (hasOnlyDeltas) this.#rows.push(row)
  }

  /** The row with this id, if it is known. Ask in ascending order. */
  at(id: number): DeltaRow | undefined {
    while (this.#next < this.#rows.length && this.#rows[this.#next]!.id < id) this.#next++
    const row = this.#rows[this.#next]
    if (row === undefined) this.clear()
    return row?.id === id ? row : undefined
  }

  /** Call this when another process may have changed the table. */
  clear(): void {
    if (this.#rows.length > 0) this.#rows = []
    this.#next = 0
  }
}
