/** Frames events like servers, and cuts pieces like networks. */
import { below, seeded } from './random.ts'

export type Cut = (bytes: Uint8Array) => Uint8Array[]

export const whole: Cut = (bytes) => [bytes]

export function inPiecesOf(size: number): Cut {
  return (bytes) => {
    const count = Math.ceil(bytes.length / size)
    return Array.from({ length: count }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
  }
}

export function inTwoAt(at: number): Cut {
  return (bytes) => [bytes.subarray(0, at), bytes.subarray(at)]
}

export function atRandom(seed: number): Cut {
  return (bytes) => {
    const random = seeded(seed)
    const pieces: Uint8Array[] = []
    for (let at = 0; at < bytes.length;) {
      const size = 1 + below(200, random)
      pieces.push(bytes.subarray(at, at + size))
      at += size
    }
    return pieces
  }
}

/** Maximum bytes that are read for the cuts of one stream: a short one is cut at every byte, a long one only at some. */
const mostBytes = 1e6

export function cutsOf({ length }: Uint8Array): Cut[] {
  const step = Math.ceil(length ** 2 / mostBytes)
  const places = Array.from({ length: Math.floor(length / step) }, (_, i) => i * step + 1)
  return [whole, ...[1, 2, 3, 7, 64, 1000].map(inPiecesOf), atRandom(1), atRandom(2), ...places.map(inTwoAt)]
}

/** All cuts of a small body, a seeded selection for others. */
export function someCutsOf(body: Uint8Array): Cut[] {
  if (body.length < 300) return cutsOf(body)
  const random = seeded(body.length)
  const places = Array.from({ length: body.length < 3000 ? 16 : 3 }, () => 1 + below(body.length - 1, random))
  return [inPiecesOf(1), inPiecesOf(64), ...places.map(inTwoAt)]
}

export interface Framing {
  /** The line end. */
  end?: string
  /** Whether each event names its type. */
  isNamed?: boolean
  isDone?: boolean
  hasComments?: boolean
}

export function framed(lines: readonly string[], framing: Framing = {}): Uint8Array {
  const { end = '\n', isNamed = false, isDone = false, hasComments = false } = framing
  const events = lines.map((line) => {
    const name = isNamed ? `event: ${/"type":"([\w.]+)"/.exec(line)?.[1] ?? 'x'}${end}` : ''
    return `${name}data: ${line}${end}${hasComments ? `: comment${end}` : ''}${end}`
  })
  return new TextEncoder().encode(events.join('') + (isDone ? `data: [DONE]${end}${end}` : ''))
}
