import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { createPolicy } from './heap.ts'

const module = pathToFileURL(join(import.meta.dirname, 'heap.ts')).href
const MB = 2 ** 20

/** Optimizes code for objects of which none is alive later, fills `mb` of memory, frees it, and rests until the memory reducer has collected twice. */
const script = (first: string, mb: number) => `
  import { constants, PerformanceObserver } from 'node:perf_hooks'
  import { keepOptimizedCode } from '${module}'
  ${first}
  const text = JSON.stringify({ one: 1, two: 2 })
  const add = ({ one, two }) => one + two
  const read = () => {
    let sum = 0
    for (let i = 0; i < 30_000; i++) sum += add(JSON.parse(text))
    return sum
  }
  for (let i = 0; i < 10; i++) read()
  let kept = []
  while (process.memoryUsage().heapTotal < ${mb} * 2 ** 20) {
    kept.push(Array.from({ length: 20_000 }, (_, i) => ({ i })))
  }
  await new Promise((resolve) => setTimeout(resolve, 50))
  kept = undefined
  const rest = setTimeout(() => {}, 20_000)
  let collections = 0
  new PerformanceObserver((list) => {
    const flag = constants.NODE_PERFORMANCE_GC_FLAGS_ALL_EXTERNAL_MEMORY
    collections += list.getEntries().filter(({ detail }) => detail.flags & flag).length
    if (collections === 2) clearTimeout(rest)
  }).observe({ entryTypes: ['gc'] })
`
/** V8 waits for a low rate of new objects, or for 100 s. With these it collects after half a second, and not before. */
const soon = ['--optimize-for-size', '--gc-memory-reducer-start-delay-ms=500', '--initial-old-space-size=1000']

interface Rest {
  /** Collections of the memory reducer. */
  collected: number
  /** Those that gave back memory. */
  reduced: number
  /** Functions that were thrown away because hidden classes were gone. */
  dropped: number
  stderr: string
}

async function restAfter(first: string, mb: number): Promise<Rest> {
  const traces = ['--trace-gc', '--trace-deopt', '--trace-memory-reducer']
  const args = [...soon, ...traces, '--input-type=module', '-e', script(first, mb)]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env: {}, timeout: 60_000 })
  const count = (pattern: RegExp) => stdout.match(pattern)?.length ?? 0
  return {
    collected: count(/Memory reducer: finished GC/gu),
    reduced: count(/Mark-Compact \(reduce\)/gu),
    dropped: count(/embedded weak objects cleared/gu),
    stderr,
  }
}

test('a server that rests keeps its optimized code', async () => {
  const [by, kept] = await Promise.all(['', 'keepOptimizedCode()'].map((first) => restAfter(first, 60)))
  expect(by!.reduced).toBeGreaterThan(0)
  expect(by!.dropped).toBeGreaterThan(0)
  expect(kept!.collected).toBeGreaterThan(0)
  expect(kept).toMatchObject({ reduced: 0, dropped: 0, stderr: '' })
}, 60_000)

test('after a high load it gives the memory back', async () => {
  expect((await restAfter('keepOptimizedCode()', 250)).reduced).toBeGreaterThan(0)
}, 60_000)

test('memory is given back once more than 128 MB are free, or a sixteenth of all, and once', () => {
  const sizes: [size: number, collected: boolean][] = [
    [100, false],
    [20, false],
    [10, true],
    [150, false],
    [30, false],
    [10, false],
    [9, false],
    [8, true],
    [140, false],
    [20, false],
    [20, true],
    [13, true],
    [11, false],
  ]
  const seen = (memory: number) => {
    const mayReduce = createPolicy(memory * MB)
    return sizes.map(([size, collected]) => mayReduce(size * MB, collected))
  }
  expect(seen(8192)).toEqual([false, false, false, false, false, true, true, false, false, false, false, false, true])
  expect(seen(1024)).toEqual([false, true, false, false, true, true, true, false, false, true, false, false, false])
})
