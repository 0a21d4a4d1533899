/** What Node has compiled is kept for the threads and processes that come next (vitest.config.ts). Those of vitest are killed, and would keep nothing. */
import { flushCompileCache } from 'node:module'
import { afterAll } from 'vitest'

afterAll(() => flushCompileCache())
