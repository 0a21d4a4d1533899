/** The charts of the last hour, day or week. Durations in ms, costs in USD. */
export interface WindowStats {
  /** The length of a bucket, in ms. */
  slice: number
  /** Oldest first, without gaps. */
  buckets: StatsBucket[]
  /** Slowest first. */
  tools: ToolStats[]
  /** Runs that are active now, and those that wait for an answer, whenever they started. */
  running: number
  waiting: number
}

export interface StatsBucket {
  /** Its start, epoch ms. */
  at: number
  /** Runs that started in it, and how many of them failed, were out of time or budget, or were interrupted. */
  runs: number
  failed: number
  /** The usage in it; in a store without tables: by the runs that started in it. */
  tokens: number
  /** Of the calls whose price is known. */
  cost: number
  /** From the start of these runs to the first delta of their answers. */
  firstToken: { p50: number; p95: number } | null
}

export interface ToolStats {
  name: string
  calls: number
  errors: number
  /** In the tool itself. Null if it never ran here: of a tool of the client, or if nobody has allowed it. */
  p50: number | null
  p95: number | null
  /** For an approval or a result of the client. Null if nobody was asked, or has replied. */
  waited: { p50: number; p95: number } | null
}
