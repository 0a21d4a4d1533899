/**
 * What readers of one run share. Those that keep up get the same entries in the same tick; where a wire is stateless they also need the
 * same piece, so the first of them makes it for all.
 */
import type { Entry } from '../part/entry.ts'
import type { Encoder, Piece } from './wire.ts'

/** The last batch that a wire has encoded, and its piece for each set of options. Nothing older is kept, whoever lags. */
export interface LastBatch<Out extends Piece> {
  /**
   * The piece for these entries, which follow each other in one log. `options`: a name of the protocol's options. Do not change the piece:
   * others send it, too.
   */
  encode(batch: readonly Entry[], options: string, encoder: Encoder<Out>): Out
}

export function createLastBatch<Out extends Piece>(): LastBatch<Out> {
  let first: Entry | undefined
  let last: Entry | undefined
  let pieces = new Map<string, Out>()

  function encodeAlone(batch: readonly Entry[], encoder: Encoder<Out>): Out {
    for (const entry of batch) encoder.write(entry)
    return encoder.take()
  }

  return {
    encode(batch, options, encoder) {
      const end = batch.at(-1)
      // The end of the run is what changes an encoder's state.
      if (end === undefined || end.type === 'run-end') return encodeAlone(batch, encoder)
      if (batch[0] !== first || end !== last) {
        first = batch[0]
        last = end
        pieces = new Map()
      }
      let piece = pieces.get(options)
      if (piece === undefined) {
        piece = encodeAlone(batch, encoder)
        pieces.set(options, piece)
      }
      return piece
    },
  }
}
