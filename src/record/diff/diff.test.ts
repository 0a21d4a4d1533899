import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { recordedEntries } from '../../part/recording.ts'
import { diffRuns } from './diff.ts'

const folder = new URL('../../wire/golden/', import.meta.url)
const names = readdirSync(folder).flatMap((file) => /^(.+)\.ndjson$/u.exec(file)?.[1] ?? [])
const entriesOf = (name: string) =>
  readFileSync(new URL(`${name}.ndjson`, folder), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

const diff = (a: readonly Entry[], b: readonly Entry[]) => diffRuns(recordedEntries('a', a), recordedEntries('b', b))

/** The same run at another time, under other names. */
const again = (entries: readonly Entry[]) =>
  entries.map((entry, i) => {
    const text = JSON.stringify({
      ...entry,
      timestamp: entry.timestamp + 1000 * i,
    })
    const other = JSON.parse(
      text.replaceAll(/"(id|toolCallId|requestId|runId|threadId)":"([^"]+)"/gu, '"$1":"other-$2"'),
    ) as Entry
    if (other.type === 'suspend') other.requests = other.requests.map((id) => `other-${id}`)
    return other
  })

describe('diffRuns', () => {
  test.each(names)('%s: another run that said the same does not differ; what one says more is found', async (name) => {
    const entries = entriesOf(name)
    expect(await diff(entries, again(entries))).toMatchObject({
      same: true,
      a: { id: 'a' },
      b: { id: 'b' },
    })
    const shorter = await diff(entries, entries.slice(0, -1))
    expect(shorter).toMatchObject({
      same: false,
      divergence: { a: { seq: entries.length }, fields: [] },
    })
    expect(shorter.divergence!.b).toBeUndefined()
  })

  test('the first entry that differs, with its fields, and what both came to', async () => {
    const entries = entriesOf('server-tool')
    const at = entries.findLastIndex(({ type }) => type === 'tool-result')
    const changed = entries.map((entry, i) => (i === at ? ({ ...entry, result: 'another' } as Entry) : entry))
    const found = await diff(entries, changed)
    expect(found.divergence).toEqual({
      a: entries[at],
      b: changed[at],
      fields: ['result'],
    })
    expect(found.b.tools.map(({ output }) => output)).toContain('"another"')
    expect(found.a.tools.map(({ output }) => output)).not.toContain('"another"')
    expect(found.a.steps).toEqual(found.b.steps)
    expect(found.a).toMatchObject({
      outcome: 'completed',
      entries: entries.length,
      text: expect.stringMatching(/./u),
    })
  })

  test('what the two were given: the text of the agent, prompts and settings; ids of calls and what became of messages do not count', async () => {
    const entries = entriesOf('server-tool')
    const at = entries.findIndex(({ type }) => type === 'prompt')
    const withPrompt = (more: object) =>
      entries.map((entry, i) => (i === at ? ({ ...entry, ...more } as Entry) : entry))
    const withAgent = entries.map((entry, i) => (i === 0 ? ({ ...entry, pipeline: 'workflow: [a]' } as Entry) : entry))
    expect((await diff(entries, again(entries))).given).toEqual([])
    expect((await diff(entries, withPrompt({ system: 'Be brief.' }))).given).toEqual(['prompt'])
    const warmer = await diff(entries, withPrompt({ settings: { temperature: 2 } }))
    expect(warmer).toMatchObject({ given: ['prompt'], divergence: { fields: ['settings'] } })
    const other = await diff(entries, withAgent)
    expect(other).toMatchObject({ given: ['agent'], b: { pipeline: 'workflow: [a]' } })

    // A fork that goes on with another text, and a message that was taken back.
    const noise = [
      { type: 'warning', code: 'forked', message: 'It goes on.' },
      { type: 'suspend', requests: [] },
      { type: 'resume', protocol: 'page', pipeline: 'workflow: [a]' },
      { type: 'message', id: 'm', content: 'Hi', protocol: 'page', sentAt: 5, outcome: 'withdrawn' },
    ].map((part) => ({ seq: 1, timestamp: 0, step: '', ...part }) as Entry)
    const found = await diff(entries, [...entries.slice(0, at), ...noise, ...entries.slice(at)])
    expect(found).toMatchObject({ same: true, given: ['agent'] })
  })

  /** A run that says these deltas: of block a, or of b if they begin with `b:`. */
  function saying(...deltas: string[]): Entry[] {
    const parts = ['a', 'b'].map((id) => ({ type: 'text-start', id }))
    const ends = ['a', 'b'].map((id) => ({ type: 'text-end', id }))
    const said = deltas.map((delta) => ({
      type: 'text-delta',
      id: delta.startsWith('b:') ? 'b' : 'a',
      delta: delta.replace(/^b:/u, ''),
    }))
    return [...parts, ...said, ...ends].map((part, i) => ({ seq: i + 1, timestamp: 0, step: 's', ...part }) as Entry)
  }

  test.each([
    ['cut', ['Hello'], ['Hel', 'lo']],
    ['cut elsewhere', ['H', 'ello', ''], ['Hell', 'o']],
    ['alternating', ['1', 'b:x', '2', 'b:y', '3'], ['b:xy', '123']],
  ])('a text that is %s does not differ', async (_, one, other) => {
    const found = await diff(saying(...one), saying(...other))
    expect(found.divergence).toBeUndefined()
    expect(found.a.text).toBe(found.b.text)
  })

  test.each([
    ['another letter', ['Hel', 'lo'], ['Hallo'], ['Hel'], ['Hallo'], ['delta']],
    ['a text that goes on', ['Hel'], ['Hel', 'lo'], undefined, ['lo'], ['type', 'delta']],
    ['a delta that goes on', ['Hel'], ['Hello'], ['Hel'], ['Hello'], ['delta']],
    ['the same delta at another place', ['aa', 'b'], ['a', 'aa', 'b'], ['b'], ['aa'], ['delta']],
    ['the same delta, and more of it', ['aa'], ['a', 'aa'], ['aa'], ['aa'], ['delta']],
    ['the same words in another block', ['x', 'b:y'], ['b:x', 'y'], ['y'], ['x'], ['delta']],
  ])('%s is found', async (_, one, other, a, b, fields) => {
    const { same, divergence } = await diff(saying(...one), saying(...other))
    expect(same).toBe(false)
    const deltas = [divergence?.a, divergence?.b].map((entry) =>
      entry?.type === 'text-delta' ? [entry.delta] : undefined,
    )
    expect([...deltas, divergence?.fields.toSorted()]).toEqual([a, b, fields.toSorted()])
  })
})
