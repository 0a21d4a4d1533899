/**
 * Application code may throw where nobody awaits it: in a timer, an event handler or a floating promise. This tells the owner
 * of the process which run such an error belongs to.
 */
import type { StepName } from './step-name.ts'

export interface Origin {
  run: string
  /** The innermost step that was running. */
  step?: StepName
}

/** Runs `body` so that errors from anything it starts can be traced back to the origin. */
export type Attribute = <T>(origin: Origin, body: () => T) => T

export const unattributed: Attribute = (_, body) => body()
