import type { Resume, RunStart } from '../part/part.ts'

/** The start of a run, with the agent and the text with which it goes on since this `resume`. */
export function startSince<S extends RunStart>(start: S, { agent, pipeline, ownPipeline }: Resume): S {
  if (agent === undefined || pipeline === undefined) return start
  const { ownPipeline: _, ...rest } = start
  return { ...rest, agent, pipeline, ...(ownPipeline === true && { ownPipeline }) } as S
}
