/** Characters of a name. File systems take 255 bytes, and a name may be two of these and an ending. */
const longest = 110

/**
 * How the names of a run's files begin. It has no full stop, so that the first one in a name ends it: the files of `run_a` are not those of
 * `run_a.b`. A long id is cut, and a sum over all of it makes it unique.
 */
export function fileNameOf(run: string): string {
  // Half a character cannot be encoded.
  const name = encodeURIComponent(run.toWellFormed()).replaceAll('.', '%2E')
  return name.length <= longest ? name : `${name.slice(0, longest - 33)}-${sumOf(run)}`
}

/** 128 bits as hexadecimal digits: to tell ids apart, not against attackers. */
function sumOf(text: string): string {
  let sum = ''
  for (let word = 0; word < 4; word++) {
    let h = 0x811c9dc5 ^ Math.imul(word + 1, 0x9e3779b1)
    for (let i = 0; i < text.length; i++) {
      h = Math.imul(h ^ text.charCodeAt(i), 0x5bd1e995)
      h ^= h >>> 15
    }
    sum += (h >>> 0).toString(16).padStart(8, '0')
  }
  return sum
}
