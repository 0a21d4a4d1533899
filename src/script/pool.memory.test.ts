import { expect, test } from 'vitest'
import { createSandboxPool } from './pool.ts'
import { runScript } from './testing/run-script.ts'

test('fifty scripts that allocate until they are stopped, at once: each fails, and the memory comes back', async () => {
  const pool = createSandboxPool()
  await Promise.all([1, 2].map(() => runScript(pool, 'await tools.orders()\nreturn 1')))
  const before = process.memoryUsage().rss
  const grabs = [
    'const a = []; for (;;) a.push(new Array(1000).fill(1))',
    'const a = []; for (;;) a.push(new Uint8Array(1 << 20))',
    'let s = "x"; for (;;) s += s',
    'const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })',
    'await tools.orders()\nconst a = []; for (;;) { a.push("x".repeat(1e5)); await null }',
  ]
  const ran = await Promise.all(
    Array.from({ length: 50 }, (_, i) => runScript(pool, grabs[i % grabs.length]!, { limits: { time: 60_000 } })),
  )
  expect(ran.map(({ error }) => error?.code)).toEqual(Array.from({ length: 50 }, () => 'script-memory'))
  expect((await runScript(pool, 'return 1')).value).toBe(1)
  // V8 gives memory back when it collects, in threads as well: the next scripts make it do so.
  await expect.poll(() => (process.memoryUsage().rss - before) / (1 << 20), { timeout: 20_000 }).toBeLessThan(100)
  await pool.close()
})
