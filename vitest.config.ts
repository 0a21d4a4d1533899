import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defaultExclude, defineConfig } from 'vitest/config'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** What a test changes or measures of its process: it has one of its own. The others in process share one: loading the same modules for each took longer than many of them. */
const ofItsOwn =
  /\bvi\.|\bglobalThis\b|\b(handler|tool|callback|wire)Registry\b|\bprocess\.(?!cwd|execPath|platform)|heapUsed|\brss\b|\bgc\(|worker_threads|child_process/u
const shared = globSync(
  ['src/**/*.test.ts', 'web/**/*.test.ts', 'test/{engine,wire,library,oracle,client,endings,server}/*.test.ts'],
  {
    cwd: here('.'),
  },
).filter((file) => !ofItsOwn.test(readFileSync(here(file), 'utf8')))
/** They share a browser as well. */
const browser = 'test/browser/*.test.ts'

export default defineConfig({
  resolve: {
    // Examples import us as their readers will; Next.js need not be installed for them.
    alias: [
      { find: /^millrace$/, replacement: here('src/index.ts') },
      { find: /^millrace\/([\w-]+)$/, replacement: `${here('src')}/$1.ts` },
      { find: 'next/server', replacement: here('test/support/next-server.ts') },
    ],
  },
  test: {
    projects: [
      { extends: true, test: { name: 'shared', include: shared, isolate: false } },
      { extends: true, test: { name: 'browser', include: [browser], isolate: false } },
      {
        extends: true,
        test: {
          name: 'own',
          include: ['{src,web,test}/**/*.test.{ts,tsx}'],
          exclude: [...defaultExclude, ...shared, browser],
        },
      },
    ],
    reporters: ['default', './test/closing-line.ts'],
    // A hang is found as well after a minute, and a slow machine is not one.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    maxWorkers: 2,
  },
})
