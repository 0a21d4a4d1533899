/** Decodes UTF-8 in pieces, as `TextDecoderStream` does, but most pieces in one native call. */

/** Holds back a character that is not complete yet. Drops a byte order mark. */
export function createTextReader(): (bytes: Uint8Array) => string {
  /** Only for pieces that may end in the middle of a character, and for the one after. */
  let decoder: TextDecoder | undefined
  let holds = false
  let isStart = true
  let isFirstText = true

  return (bytes) => {
    if (bytes.length === 0) return ''
    const endsWhole = bytes[bytes.length - 1]! < 0x80
    let text: string
    if (endsWhole && !holds) text = toText(bytes)
    else {
      decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })
      text = decoder.decode(bytes, { stream: true })
      holds = !endsWhole
    }
    if (isFirstText && text !== '') {
      if (isStart && text.charCodeAt(0) === 0xfeff) text = text.slice(1)
      isStart = false
      // `eventsource-parser` also drops a mark that was encoded twice.
      if (text !== '') {
        isFirstText = false
        if (text.startsWith('\u00ef\u00bb\u00bf')) text = text.slice(3)
      }
    }
    return text
  }
}

function toText(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return buffer.toString('utf8')
}
