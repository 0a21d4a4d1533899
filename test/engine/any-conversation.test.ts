/**
 * Random conversations: every request of a model is one that its service takes, no message of a user is lost or told twice, the log is legal, and
 * clients see what it has. `MILLRACE_SEEDS=1000-4000` tries others.
 */
import { expect, test } from 'vitest'
import { converse } from '../support/any-conversation.ts'
import { often } from '../support/thorough.ts'

const [first = 1, last = often(48)] = (process.env['MILLRACE_SEEDS'] ?? '').split('-').filter(Boolean).map(Number)

test('conversations keep their promises', { timeout: 3_000_000 }, async () => {
  const faults: string[] = []
  for (let seed = first; seed <= last && faults.length < 5; seed++)
    await converse(seed).catch((error: unknown) => faults.push((error as Error).message))
  expect(faults.join('\n\n')).toBe('')
})
