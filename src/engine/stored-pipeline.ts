import { parsePipeline } from '../pipeline/parse.ts'
import type { Pipeline } from '../pipeline/pipeline.ts'

/** Parses a pipeline from a run's log. Undefined if the current parser rejects it: the run must still be able to end. */
export function readStored(text: string | undefined): Pipeline | undefined {
  if (text === undefined) return undefined
  try {
    return parsePipeline(text)
  } catch {
    // Mistakes in the file or a bug in the parser.
    return undefined
  }
}
