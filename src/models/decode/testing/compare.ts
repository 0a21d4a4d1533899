/** The tests that every decoder passes: fixtures, cuts, breaks, mutations. */
import { isDeepStrictEqual } from 'node:util'
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { expect } from 'vitest'
import type { Readers } from './chat-readers.ts'
import { createRandom, mutateStream, pick } from './mutate.ts'
import { createComparison, frames, piecesOf } from './oracle.ts'

type Options = Partial<LanguageModelV4CallOptions>

export async function compareStream(readers: Readers, text: string, cut: number, options?: Options): Promise<void> {
  const pieces = piecesOf(Buffer.from(text), cut)
  const theirs = await readers.theirs(pieces, options)
  const [our, their] = createComparison(theirs, text)(readers.ours(pieces, theirs, options))
  // `toEqual` is slow and only says where they differ.
  if (!isDeepStrictEqual(our, their))
    expect({ text, cut, ...(our as object) }).toEqual({ text, cut, ...(their as object) })
}

/** Every position of a short stream; sizes of pieces for a long one. */
export async function compareCuts(readers: Readers, text: string, options?: Options): Promise<void> {
  const bytes = Buffer.from(text)
  const whole = [bytes]
  const theirs = await readers.theirs(whole, options)
  const compare = createComparison(theirs, text)
  const check = (pieces: Uint8Array[]) => {
    const [our, their] = compare(readers.ours(pieces, theirs, options))
    if (!isDeepStrictEqual(our, their))
      expect({ pieces: pieces.length, our }).toEqual({ pieces: pieces.length, our: their })
  }
  check(whole)
  for (const size of [1, 7, 64]) check(piecesOf(bytes, size))
  const step = Math.ceil(bytes.length ** 2 / 4e6)
  for (let at = 0; at <= bytes.length; at += step) check([bytes.subarray(0, at), bytes.subarray(at)])
}

export interface Fuzz {
  readers: readonly Readers[]
  /** The lines of each fixture. */
  streams: readonly (readonly string[])[]
  keys: readonly string[]
  chunks: number
  seed: number
  events?: boolean
  options?: Options[]
}

/** Compares `chunks` mutated chunks. Returns how many streams that were. */
export async function fuzz({
  readers,
  streams,
  keys,
  chunks,
  seed,
  events = false,
  options = [{}],
}: Fuzz): Promise<number> {
  const all = streams.flat()
  let done = 0
  let count = 0
  for (; done < chunks; count++) {
    const random = createRandom(seed + count)
    const lines = pick(streams, random)
    const from = random(3) === 0 ? random(lines.length) : 0
    const mutated = mutateStream(lines.slice(from, from + 60), all, random, keys)
    let text = frames(mutated, { events, done: random(2) === 0 })
    if (random(8) === 0) text = text.replaceAll('\n', '\r\n')
    if (random(8) === 0) text = text.replaceAll('\n\n', '\n: comment\n\n')
    const cut = pick([1e9, 1e9, 4096, 500, 64], random)
    await compareStream(pick(readers, random), text, cut, pick(options, random))
    done += mutated.length
  }
  return count
}
