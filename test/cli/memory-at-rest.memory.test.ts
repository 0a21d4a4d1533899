/** What V8 does with a server that rests, as V8 itself tells it. */
import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
// With these V8 collects an idle heap a second after the last full collection, not after up to 100 s.
const soon = ['--optimize-for-size', '--gc-memory-reducer-start-delay-ms=500', '--initial-old-space-size=1000']
const traces = ['--trace-gc', '--trace-memory-reducer']

/** The line of the first collection that `millrace serve` owes to its rest. */
async function collectionAtRest(...flags: string[]): Promise<string | undefined> {
  const args = [...soon, ...traces, ...flags, 'bin/millrace.js', 'serve', 'agents', '--port', '0', '--data', 'none']
  const server = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'ignore'], timeout: 30_000 })
  try {
    let isNext = false
    for await (const line of createInterface({ input: server.stdout })) {
      if (isNext && line.includes('Mark-Compact')) return line
      // Worker threads have heaps of their own; 0 is the server's.
      isNext ||= /^\[\d+:0x[0-9a-f]+:0\].*Memory reducer: finished GC/u.test(line)
    }
    return undefined
  } finally {
    server.kill()
  }
}

describe('memory of an idle server', () => {
  test('millrace serve keeps what its code depends on when it rests; a flag given to Node takes precedence', async () => {
    const reduced = 'Mark-Compact (reduce)'
    const [usual, given] = await Promise.all(
      [[], ['--memory-reducer-favors-memory']].map((flags) => collectionAtRest(...flags)),
    )
    expect(given).toContain(reduced)
    expect(usual).toContain('Mark-Compact')
    expect(usual).not.toContain(reduced)
  }, 60_000)
})
