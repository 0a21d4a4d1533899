/** Makes a PNG of a page smaller: at most 256 colours, which a page of plain areas and text hardly misses. */
import { deflateSync, inflateSync, crc32 } from 'node:zlib'

/** 8 bits a channel, RGB or RGBA, not interlaced, as browsers take pictures. */
export function shrinkPng(png: Buffer): Buffer {
  const { width, height, channels, data } = read(png)
  const pixels = unfilter(data, width, height, channels)
  const { palette, indices } = reduce(pixels, width * height)
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++) indices.copy(rows, y * (width + 1) + 1, y * width, (y + 1) * width)
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 3, 0, 0, 0], 8)
  const chunks = [
    chunk('IHDR', head),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]
  return Buffer.concat([png.subarray(0, 8), ...chunks])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

function read(png: Buffer) {
  let at = 8
  const parts: Buffer[] = []
  const [width, height, bits, type, , , interlaced] = [
    png.readUInt32BE(16),
    png.readUInt32BE(20),
    ...png.subarray(24, 29),
  ] as [number, number, number, number, number, number, number]
  if (bits !== 8 || (type !== 2 && type !== 6) || interlaced !== 0)
    throw new Error('not a picture as browsers take them')
  while (at < png.length) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  return { width, height, channels: type === 6 ? 4 : 3, data: inflateSync(Buffer.concat(parts)) }
}

/** RGB of each pixel, one number each. */
function unfilter(data: Buffer, width: number, height: number, channels: number): Uint32Array {
  const stride = width * channels
  const rows = Buffer.alloc(stride * height)
  const pixels = new Uint32Array(width * height)
  for (let y = 0; y < height; y++) {
    const filter = data[y * (stride + 1)]!
    for (let x = 0; x < stride; x++) {
      const left = x >= channels ? rows[y * stride + x - channels]! : 0
      const up = y > 0 ? rows[(y - 1) * stride + x]! : 0
      const corner = x >= channels && y > 0 ? rows[(y - 1) * stride + x - channels]! : 0
      const guess = [0, left, up, (left + up) >> 1, filter === 4 ? paeth(left, up, corner) : 0][filter]!
      rows[y * stride + x] = data[y * (stride + 1) + 1 + x]! + guess
    }
    for (let x = 0; x < width; x++) pixels[y * width + x] = rows.readUIntBE(y * stride + x * channels, 3)
  }
  return pixels
}

function paeth(a: number, b: number, c: number): number {
  const p = a + b - c
  const [pa, pb, pc] = [Math.abs(p - a), Math.abs(p - b), Math.abs(p - c)]
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c
}

/** The most frequent colours; the others become the nearest of those. */
function reduce(pixels: Uint32Array, count: number): { palette: Buffer; indices: Buffer } {
  const often = new Map<number, number>()
  for (const pixel of pixels) often.set(pixel, (often.get(pixel) ?? 0) + 1)
  const kept = [...often]
    .sort((a, b) => b[1] - a[1])
    .slice(0, 256)
    .map(([colour]) => colour)
  const indexOf = new Map(kept.map((colour, i) => [colour, i]))
  for (const colour of often.keys()) {
    if (!indexOf.has(colour)) indexOf.set(colour, nearest(kept, colour))
  }
  const palette = Buffer.alloc(kept.length * 3)
  kept.forEach((colour, i) => palette.writeUIntBE(colour, i * 3, 3))
  const indices = Buffer.alloc(count)
  pixels.forEach((pixel, i) => (indices[i] = indexOf.get(pixel)!))
  return { palette, indices }
}

function nearest(kept: readonly number[], colour: number): number {
  const parts = (value: number) => [value >> 16, (value >> 8) & 255, value & 255] as const
  const [r, g, b] = parts(colour)
  let best = 0
  let least = Infinity
  kept.forEach((each, i) => {
    const [red, green, blue] = parts(each)
    const far = (red - r) ** 2 + (green - g) ** 2 + (blue - b) ** 2
    if (far < least) [best, least] = [i, far]
  })
  return best
}
