/** Packs texts into a ZIP file: what every system opens, made of what the browser has. */
export interface ZipEntry {
  name: string
  text: string
}

const encoder = new TextEncoder()

export async function zipOf(entries: readonly ZipEntry[], time: Date): Promise<Blob> {
  const parts: BlobPart[] = []
  const list: Uint8Array<ArrayBuffer>[] = []
  let at = 0
  for (const { name, text } of entries) {
    const path = encoder.encode(name)
    const plain = encoder.encode(text)
    const packed = await deflated(plain)
    // Version 2.0, names in UTF-8, deflated.
    const facts = [
      u16(20, 0x0800, 8, dosTime(time), dosDay(time)),
      u32(crc32(plain), packed.length, plain.length),
      u16(path.length, 0),
    ]
    const head = joined([u32(0x04034b50), ...facts, path])
    list.push(joined([u32(0x02014b50), u16(20), ...facts, u16(0, 0, 0), u32(0, at), path]))
    parts.push(head, packed)
    at += head.length + packed.length
  }
  const length = list.reduce((sum, each) => sum + each.length, 0)
  const end = joined([u32(0x06054b50), u16(0, 0, list.length, list.length), u32(length, at), u16(0)])
  return new Blob([...parts, ...list, end], { type: 'application/zip' })
}

async function deflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

function u16(...values: number[]): Uint8Array<ArrayBuffer> {
  return numbers(values, 2)
}

function u32(...values: number[]): Uint8Array<ArrayBuffer> {
  return numbers(values, 4)
}

/** The lowest byte first. */
function numbers(values: readonly number[], size: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(values.flatMap((value) => Array.from({ length: size }, (_, i) => (value >>> (8 * i)) & 255)))
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

const dosTime = (time: Date) => (time.getHours() << 11) | (time.getMinutes() << 5) | (time.getSeconds() >> 1)
const dosDay = (time: Date) => ((time.getFullYear() - 1980) << 9) | ((time.getMonth() + 1) << 5) | time.getDate()

const table = Array.from({ length: 256 }, (_, n) => {
  let crc = n
  for (let i = 0; i < 8; i++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1
  return crc >>> 0
})

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) crc = table[(crc ^ byte) & 255]! ^ (crc >>> 8)
  return ~crc >>> 0
}
