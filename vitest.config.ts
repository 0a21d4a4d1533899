import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  resolve: {
    // Examples import us as their readers will; Next.js need not be installed for them.
    alias: [
      { find: /^millrace$/, replacement: here('src/index.ts') },
      { find: /^millrace\/(\w+)$/, replacement: `${here('src')}/$1.ts` },
      { find: 'next/server', replacement: here('test/support/next-server.ts') },
    ],
  },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    reporters: ['default', './test/closing-line.ts'],
    // A hang is found as well after a minute, and a slow machine is not one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    maxWorkers: 2,
  },
})
