/** `vi.waitFor` and `vi.waitUntil` wait as long as `expect.poll` does (vitest.config.ts): a second is short on a busy machine. */
import { vi } from 'vitest'

const timeout = 30_000
const { waitFor, waitUntil } = vi
type Options = Parameters<typeof waitFor>[1]
const patient = (options: Options) => (typeof options === 'number' ? options : { timeout, ...options })

vi.waitFor = (check, options) => waitFor(check, patient(options))
vi.waitUntil = (check, options) => waitUntil(check, patient(options))
