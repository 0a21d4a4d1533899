/**
 * Returns a function that adds to a text. The text of a long answer would be a chain of as many strings as it has deltas, which the
 * garbage collector copies again and again: so it is joined now and then, more rarely the longer it is.
 */
export function growing(target: { text: string }): (more: string) => void {
  let pieces: string[] = []
  return (more) => {
    if (pieces.length === 0) pieces.push(target.text)
    const own = ownCopy(more)
    pieces.push(own)
    target.text += own
    if (pieces.length < 64 + target.text.length / 64) return
    target.text = pieces.join('')
    pieces = []
  }
}

/** From this length on, V8 makes a part of a string refer to the whole one. */
const shares = 13

/** A copy that does not keep the text alive that it was cut from: the event of a model server, for example. */
function ownCopy(piece: string): string {
  return piece.length < shares ? piece : [piece.slice(0, 1), piece.slice(1)].join('')
}
