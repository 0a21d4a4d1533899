/** docs/runs-and-readers.md says what leaving does by default: as the code does it. */
import { describe, expect, test } from 'vitest'
import { describeKeys } from '../../src/pipeline/agent-schema.ts'
import { startersPolicy } from '../../src/runtime/disconnect-policy.ts'
import { readDocument } from './documents.ts'

const page = readDocument('docs/runs-and-readers.md')
/** What the table says of a client: what happens when its last reader leaves. */
const leaving = (client: string) =>
  page
    .split('\n')
    .find((line) => line.startsWith(`| [${client}`))!
    .split(' | ')[1]!

describe('docs: runs and readers', () => {
  test('the defaults of chats and of OpenAI clients are those of the code', () => {
    const policy = startersPolicy(undefined, 'ui', true)
    expect(policy).toEqual({ cancelAfter: 15_000 })
    expect(leaving('`useChat`')).toBe('the run is stopped after 15 seconds')
    for (const client of ['AG-UI', 'Socket.IO']) expect(leaving(client)).toBe('the same')
    expect(startersPolicy(undefined, 'openai', true)).toBe('cancel')
    expect(leaving('OpenAI')).toMatch(/^the run is stopped at once/u)
    // Kept in memory only, a chat is stopped as well.
    expect(startersPolicy(undefined, 'ui', false)).toBe('cancel')
    expect(page).toContain('Where runs are kept in memory only, a run of a chat is stopped at once')
  })

  test('every value of onDisconnect and onBusy is on the page', () => {
    const valuesOf = (key: string) =>
      [
        ...describeKeys()
          .find((row) => row.place === 'file' && row.key === key)!
          .type.matchAll(/\b(?!one|of|or|map)\w+/gu),
      ].map(([value]) => value)
    expect(valuesOf('onDisconnect')).toEqual(['cancel', 'detach'])
    expect(valuesOf('onBusy')).toHaveLength(4)
    for (const value of [...valuesOf('onDisconnect'), ...valuesOf('onBusy')]) expect(page).toContain(`\`${value}\``)
    expect(page).toContain('`{ cancelAfter: 60s }`')
  })
})
