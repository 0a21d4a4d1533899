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
    testTimeout: 20_000,
    hookTimeout: 20_000,
    maxWorkers: 2,
  },
})
