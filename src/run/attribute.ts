/**
 * Code of an application may throw where nobody waits for it: in a timer, in an event handler, in a promise that is not
 * awaited. Whoever owns the process may learn which run such an error belongs to.
 */
import type { StepName } from './step-name.ts'

export interface Origin {
  run: string
  /** The innermost step that was running. */
  step?: StepName
}

/** Runs `body` such that whatever it starts can be traced back to its origin. */
export type Attribute = <T>(origin: Origin, body: () => T) => T

export const unattributed: Attribute = (_, body) => body()
