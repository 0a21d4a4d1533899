/** Limits of one script. */
export interface ScriptLimits {
  /** ms of CPU; waiting for calls does not count. */
  time: number
  /** Bytes. */
  memory: number
  /** Calls of tools and questions, in all. */
  calls: number
  /** Calls at the same time. */
  parallel: number
}
