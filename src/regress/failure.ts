/** Why a case has failed. */
export interface Failure {
  /** What was expected: a key of `expect`, or `recording`, `answer`, `prompt`, `run`. */
  what: string
  message: string
  /** Both, when they can be compared. */
  expected?: unknown
  got?: unknown
}
