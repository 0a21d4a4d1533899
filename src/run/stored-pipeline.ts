import { parsePipeline } from '../pipeline/parse.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'

/** A pipeline as a log holds it; undefined when today's parser refuses it, which must not keep its run from ending. */
export function readStored(text: string | undefined): Pipeline | undefined {
  if (text === undefined) return undefined
  try {
    return parsePipeline(text)
  } catch {
    // Faults, or a bug of the parser: either way the run must end.
    return undefined
  }
}
