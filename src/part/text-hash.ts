/** Two FNV-1a hashes of 32 bits and the length. For texts of one owner, who gains nothing by a collision. */
export function textHash(text: string): string {
  let one = 0x811c9dc5
  let other = 0x2f0b4a47
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    one = Math.imul(one ^ unit, 0x01000193)
    other = Math.imul(other ^ (unit + 1), 0x01000193) ^ (other >>> 15)
  }
  return `${(one >>> 0).toString(36)}.${(other >>> 0).toString(36)}.${text.length.toString(36)}`
}
