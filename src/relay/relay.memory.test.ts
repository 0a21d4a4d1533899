/** What a relay holds of the sources that it has read. */
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { createRelay } from './relay.ts'
import { readAll, watched } from './testing/relay-sources.ts'
import { expectSize } from '../../test/support/figure.ts'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

describe('createRelay', () => {
  test.each(['array', 'async'] as const)(
    '10,000 sources (%s): no stack, and each is let go once it is read',
    async (shape) => {
      const { sequence, chain, end } = createRelay<number>()
      const sources: WeakRef<object>[] = []
      for (let i = 0; i < 10_000; i++) {
        // Most are empty: they end in the middle of an answer.
        const { source } = watched({ shape, items: i % 100 === 0 ? [i] : [] })
        sources.push(new WeakRef(source))
        void chain(source)
      }
      end()
      for (let i = 0; i < 9_900; i += 100) expect((await sequence.next()).value).toBe(i)
      await turn()
      collect()
      // A few of them may stand on the machine's stack still.
      expect(sources.slice(0, 9_800).filter((source) => source.deref() !== undefined).length).toBeLessThan(50)
      expect(sources.slice(9_801).every((source) => source.deref() !== undefined)).toBe(true)
      expect(await readAll(sequence)).toEqual({ items: [9_900] })
    },
  )

  test('10,000 sources one after the other hold no more than one', async () => {
    const { sequence, chain, end } = createRelay<string>()
    async function produce(): Promise<void> {
      for (let i = 0; i < 10_000; i++) await chain([`${i}`.padEnd(4_000).toUpperCase()])
      end()
    }
    const producing = produce()
    const held: number[] = []
    let count = 0
    for await (const item of sequence) {
      expect(item).toHaveLength(4_000)
      if (++count % 2_500 !== 0) continue
      collect()
      held.push(process.memoryUsage().heapUsed)
    }
    await producing
    // What went through is 40 MB.
    expect(held).toHaveLength(4)
    expectSize('heap that grows with a relay', held.at(-1)! - held[0]!, 4_000_000)
  })
})
