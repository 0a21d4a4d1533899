import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultExclude, defineConfig } from 'vitest/config'
import { filesNotOnRedis } from './test/support/not-on-redis.ts'
import { hasRedis } from './test/support/redis-server.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** What a test changes or measures of its process: it has one of its own. The others share one: loading the same modules for each took longer than many of them. */
const ofItsOwn =
  /\bvi\.(?!waitFor|waitUntil|fn\b)|\bglobalThis\b|\b(handler|tool|callback|wire)Registry\b|\bprocess\.(?!cwd|execPath|platform|pid|versions|ts\b|env\b(?!\[[^\]]+\] = ))|delete process\.|heapUsed|\brss\b|\bgc\(|worker_threads/u
const sharing = (patterns: string[]) =>
  globSync(patterns, { cwd: here('.') }).filter((file) => !ofItsOwn.test(readFileSync(here(file), 'utf8')))
const shared = sharing([
  'src/**/*.test.ts',
  'web/**/*.test.{ts,tsx}',
  'test/{engine,wire,library,oracle,client,endings,server,regress,edge}/**/*.test.ts',
])
/** What they test are processes, and most run commands, of which one stays for all of them: see test/support/warm-command.ts. */
const processes = [
  // What looks as if they changed their own is in what they give to commands.
  ...globSync('test/cli/*.test.ts', { cwd: here('.') }),
  ...sharing(['test/{crash,docs,editor,examples}/*.test.ts']),
]
/** They share a browser as well. */
const browser = 'test/browser/*.test.ts'
/** The tests over HTTP once more, with Redis in the place of SQLite. */
const onServer = globSync('test/server/*.test.ts', { cwd: here('.') }).filter(
  (file) => !(basename(file) in filesNotOnRedis),
)
const onRedis = onServer.filter((file) => shared.includes(file))
const onRedisAlone = onServer.filter((file) => !shared.includes(file))

const packages = [
  // Examples import us as their readers will; Next.js need not be installed for them.
  { find: /^millrace$/, replacement: here('src/index.ts') },
  { find: /^millrace\/([\w-]+)$/, replacement: `${here('src')}/$1.ts` },
  { find: 'next/server', replacement: here('test/support/next-server.ts') },
]

// A hang is found as well after a minute, and a slow machine is not one.
const limits = {
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 30_000 } },
  // A machine that others use too can stand still for seconds. What passes only then is named in the closing lines.
  retry: process.env['CI'] === undefined ? 0 : 1,
  // After those in a browser: a test of pages needs a core for itself and one for the browser.
  sequence: { groupOrder: 1 },
  // Many tests wait for processes most of the time: two more than the cores of a small machine.
  maxWorkers: 4,
}

const redis = {
  resolve: {
    alias: [
      ...packages,
      { find: /^\.{1,2}\/(?:.*\/)?sqlite-store\.ts$/, replacement: here('test/support/redis-instead.ts') },
    ],
  },
  test: {
    ...limits,
    globalSetup: hasRedis ? ['test/support/redis-for-all.ts'] : [],
    setupFiles: ['test/support/redis-set-up.ts'],
  },
}

export default defineConfig({
  resolve: {
    alias: packages,
  },
  test: {
    projects: [
      { extends: true, test: { name: 'shared', include: shared, isolate: false } },
      {
        resolve: redis.resolve,
        test: {
          ...redis.test,
          name: 'redis',
          include: hasRedis ? onRedis : ['test/support/redis-for-all.test.ts'],
          isolate: false,
        },
      },
      { resolve: redis.resolve, test: { ...redis.test, name: 'redis-own', include: hasRedis ? onRedisAlone : [] } },
      { extends: true, test: { name: 'processes', include: processes, isolate: false } },
      {
        extends: true,
        test: { name: 'browser', include: [browser], isolate: false, maxWorkers: 2, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'own',
          include: ['{src,web,test}/**/*.test.{ts,tsx}'],
          exclude: [...defaultExclude, ...shared, ...processes, browser, 'test/support/redis-for-all.test.ts'],
        },
      },
    ],
    reporters: ['default', './test/closing-line.ts'],
    ...limits,
  },
})
