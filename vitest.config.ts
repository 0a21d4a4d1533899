/**
 * Which test runs where. The name of a file says it, or its folder:
 *
 * | files                                             | command               |
 * | ------------------------------------------------- | --------------------- |
 * | `*.test.ts`                                       | `npm test`            |
 * | `*.all.test.ts`, and all in the folders `forAll`  | `npm run test:all`    |
 * | `*.memory.test.ts`                                | `npm run test:memory` |
 * | `*.clis.test.ts`                                  | `npm run test:clis`   |
 *
 * `npx vitest run <file>` runs a file of any of them.
 */
import { globSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { filesNotOnRedis } from './test/support/not-on-redis.ts'
import { hasRedis } from './test/support/redis-server.ts'

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))

// A thread or a process that starts from the source takes half of the time, and hundreds do.
process.env['NODE_COMPILE_CACHE'] ??= here('node_modules/.cache/compiled')

/** They need processes, other programs or a browser: `npm run test:all` runs them. */
const forAll = /^(src\/store\/redis|test\/(browser|chaos|crash|editor|examples|fleet))\//u
const files = globSync('{src,web,test}/**/*.test.{ts,tsx}', { cwd: here('.') }).filter(
  (file) => !file.endsWith('/redis-for-all.test.ts'),
)
const suiteOf = (file: string) =>
  /\.(all|memory|clis)\.test\.tsx?$/u.exec(file)?.[1] ?? (forAll.test(file) ? 'all' : 'fast')
const suite = (name: string) => files.filter((file) => suiteOf(file) === name)

/** A test that changes its process has one of its own. The others share a process: loading the same modules for each file takes longer than most tests. */
const changesProcess =
  /\bvi\.(?!waitFor|waitUntil|fn\b)|\bglobalThis\b|\b(handler|tool|callback|wire)Registry\b|\bprocess\.(?!cwd|execPath|platform|pid|versions|ts\b|env\b(?!\[[^\]]+\] = ))|delete process\.|worker_threads/u
const needsOwnProcess = (file: string) => changesProcess.test(readFileSync(here(file), 'utf8'))
const shared = (of: string[]) => of.filter((file) => !needsOwnProcess(file))
const own = (of: string[]) => of.filter(needsOwnProcess)

const isBrowser = (file: string) => file.startsWith('test/browser/')
const all = suite('all').filter((file) => !isBrowser(file))
/** The tests over HTTP once more, with Redis in the place of SQLite. */
const onRedis = suite('fast').filter(
  (file) => /^test\/(?:server|mcp)\/[^/]+$/u.test(file) && !(basename(file) in filesNotOnRedis),
)

const packages = [
  // Examples import us as their readers will; Next.js need not be installed for them.
  { find: /^millrace$/, replacement: here('src/index.ts') },
  { find: /^millrace\/([\w-]+)$/, replacement: `${here('src')}/$1.ts` },
  { find: 'next/server', replacement: here('test/support/next-server.ts') },
]

const limits = {
  // A hang is found as well after a minute, and a slow machine is not one.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 30_000 } },
  setupFiles: [here('test/support/patience.ts'), here('test/support/compiled.ts')],
  // Node's readline looks at this one whatever terminal a test gives it, and edits no line where it is `dumb`.
  env: { TERM: 'xterm' },
}
/** Tests wait for sockets and processes now and then: more of them at a time than a machine has cores. */
const waiting = { ...limits, maxWorkers: availableParallelism() + 2 }

const redis = {
  resolve: {
    alias: [
      ...packages,
      { find: /^\.{1,2}\/(?:.*\/)?sqlite\/store\.ts$/, replacement: here('test/support/redis-instead.ts') },
    ],
  },
  test: {
    ...waiting,
    globalSetup: hasRedis ? ['test/support/redis-for-all.ts'] : [],
    setupFiles: [...limits.setupFiles, here('test/support/redis-set-up.ts')],
  },
}

const project = (name: string, include: string[], more: object = {}) => ({
  extends: true as const,
  test: { ...limits, name, include: include.length > 0 ? include : ['none'], ...more },
})

export default defineConfig({
  resolve: { alias: packages },
  test: {
    projects: [
      project('fast', shared(suite('fast')), { ...waiting, isolate: false }),
      project('fast-own', own(suite('fast')), waiting),
      project('all', shared(all), { ...waiting, isolate: false, sequence: { groupOrder: 1 } }),
      project('all-own', own(all), { ...waiting, sequence: { groupOrder: 1 } }),
      // First, and by themselves: a page needs a core for itself and one for its browser, but waits for what it has asked.
      project('all-browser', suite('all').filter(isBrowser), { isolate: false, maxWorkers: 3 }),
      {
        resolve: redis.resolve,
        test: {
          ...redis.test,
          name: 'all-redis',
          include: hasRedis ? shared(onRedis) : ['test/support/redis-for-all.test.ts'],
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        resolve: redis.resolve,
        test: {
          ...redis.test,
          name: 'all-redis-own',
          include: hasRedis ? own(onRedis) : [],
          sequence: { groupOrder: 1 },
        },
      },
      project('memory', suite('memory'), { maxWorkers: 1 }),
      project('clis', suite('clis'), { maxWorkers: 1 }),
    ],
    reporters: ['default', './test/closing-line.ts'],
    ...limits,
  },
})
