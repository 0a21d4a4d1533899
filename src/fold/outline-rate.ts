/** How fast a text came: its characters in equal slices of time, which grow with it. */
import type { OutlineBlock } from './outline-item.ts'

const most = 64
/** The first length of a slice, in ms. */
const shortest = 16

/** Counts characters that came at a time. It is not known when each of merged deltas came: they are spread evenly. */
export function addChars(block: OutlineBlock, time: number, chars: number, isMerged: boolean): void {
  const rate = (block.rate ??= [])
  block.per ??= shortest
  // Clocks may be set back.
  const past = Math.max(0, time - block.first!)
  for (; past >= most * block.per; block.per *= 2) halve(rate)
  const to = Math.max(rate.length - 1, Math.floor(past / block.per))
  const from = Math.min(rate.length, to)
  while (rate.length <= to) rate.push(0)
  if (!isMerged) rate[to]! += chars
  else for (let i = from, left = chars; i <= to; i++) left -= put(rate, i, Math.round(left / (to - i + 1)))
}

function put(rate: number[], slice: number, chars: number): number {
  rate[slice]! += chars
  return chars
}

function halve(rate: number[]): void {
  for (let i = 0; i * 2 < rate.length; i++) rate[i] = rate[i * 2]! + (rate[i * 2 + 1] ?? 0)
  rate.length = Math.ceil(rate.length / 2)
}
