/**
 * Returns a function that adds to a text. The text of a long answer would be a chain of as many strings as it has deltas, which the
 * garbage collector copies again and again: so it is joined now and then, more rarely the longer it is.
 */
export function growing(target: { text: string }): (more: string) => void {
  let pieces: string[] = []
  return (more) => {
    if (pieces.length === 0) pieces.push(target.text)
    pieces.push(more)
    target.text += more
    if (pieces.length < 64 + target.text.length / 64) return
    target.text = pieces.join('')
    pieces = []
  }
}
