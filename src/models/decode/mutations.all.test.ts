/** Many mutated streams. CONTRIBUTING.md has the command for a long run. */
import { describe, test } from 'vitest'
import { checkMutated } from './testing/mutated.ts'
import { protocols } from './testing/play.ts'

const streams = Number(process.env['MILLRACE_FUZZ'] ?? 1500)
const first = Number(process.env['MILLRACE_FUZZ_SEED'] ?? 1000)

describe('decoders of mutated streams', () => {
  test.each(protocols)('%s', { timeout: 60_000 + streams * 100 }, (protocol) => {
    for (let seed = first; seed < first + streams; seed++) checkMutated(protocol, seed)
  })
})
