/** That the model server without sockets gives all of its deltas to whoever reads them. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { core, startChild } from '../../bench/child.ts'
import type { Measured } from '../../bench/in-process.ts'

const file = join(import.meta.dirname, '../../bench/in-process.ts')

test.each(['ui-SQLite-bytes', 'ui-SQLite-package', 'ai-sdk-ui-bytes'])(
  'in-process, %s: every delta arrives, of several answers at once, in a burst and turn by turn',
  async (name) => {
    const child = await startChild({ args: [file], core: core.server, awaitReady: false, channel: true })
    try {
      for (const pattern of ['burst', 'turn']) {
        // Several socket reads each. It throws if a delta is missing or out of order.
        await child.call('begin', { name, pattern, deltas: 700 })
        const { cpu } = await child.call<Measured>('measure', { count: 3, ms: 1 }, 60_000)
        expect(cpu).toBeGreaterThan(0)
      }
    } finally {
      await child.stop()
    }
  },
)
