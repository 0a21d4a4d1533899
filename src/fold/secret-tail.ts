/**
 * One text that comes in pieces, without its secrets. The end of a piece that may begin a secret is held until the next
 * piece decides. One matching character is too little to hold: nearly every second token of ordinary text would arrive
 * without its last letter until the model says more. So the first character of a secret that is cut behind it may remain.
 */
import type { Scan } from './secret-scan.ts'

export interface Tail {
  /** What may begin a secret. */
  rest: string
  /** Its first character was emitted. */
  shown: boolean
}

/** What to emit for `piece`, and what is held behind it. `final`: nothing follows. */
export function cleanPiece(
  scan: Scan,
  before: Tail | undefined,
  piece: string,
  final: boolean,
): { text: string; tail: Tail | undefined } {
  if (before === undefined) {
    const { text, rest } = scan(piece, final)
    if (rest.length === 1) return { text: text + rest, tail: { rest, shown: true } }
    return { text, tail: rest === '' ? undefined : { rest, shown: false } }
  }
  const scanned = scan(before.rest + piece, final)
  let { text } = scanned
  const { rest } = scanned
  const stillHeld = text === ''
  // Where it did not become part of a secret, it would be emitted twice.
  if (before.shown && text[0] === before.rest[0]) text = text.slice(1)
  if (rest === '') return { text, tail: undefined }
  const shown = stillHeld && before.shown
  if (rest.length === 1 && !shown) return { text: text + rest, tail: { rest, shown: true } }
  return { text, tail: { rest, shown } }
}
