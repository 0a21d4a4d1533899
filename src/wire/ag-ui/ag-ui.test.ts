import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { showAgUi } from '../../../test/ag-ui-client.ts'
import { agUiRuns } from '../../../test/ag-ui-judge.ts'
import { arbitraryNestedRun } from '../../../test/arbitrary-run.ts'
import { parseSse } from '../../../test/sse.ts'
import { wordsSaid } from '../../../test/words-said.ts'
import { createGrammar } from '../../fold/grammar.ts'
import type { Entry } from '../../part/entry.ts'
import { lastResume, wireContract } from '../wire.contract.ts'
import type { WireContext } from '../wire.ts'
import type { AgUiEvent, AgUiOptions } from './ag-ui-event.ts'
import { agUiObjectsWire, agUiWire } from './ag-ui.ts'
import { often } from '../../../test/support/thorough.ts'

const options = fc.record({ old: fc.boolean(), traces: fc.boolean(), joins: fc.boolean() })

/** Some with a provider that uses the ids of its calls again. */
const runs = fc.tuple(arbitraryNestedRun, fc.boolean()).map(([entries, repeats]) => {
  if (!repeats) return entries
  const again = JSON.parse(JSON.stringify(entries).replaceAll(/"call-\d*(\d)"/gu, '"call-$1"')) as Entry[]
  const grammar = createGrammar()
  return again.every((entry) => grammar.check(entry) === undefined) ? again : entries
})

describe('AG-UI wire', () => {
  test('ag-ui: some random runs use the ids of calls again', () => {
    const repeating = fc.sample(runs, { numRuns: 300, seed: 1 }).filter((entries) => {
      const ids = entries.flatMap((entry) => (entry.type === 'tool-call' ? [entry.toolCallId] : []))
      return new Set(ids).size < ids.length
    })
    expect(repeating.length).toBeGreaterThan(3)
  })

  function encodeAll(entries: readonly Entry[], context?: WireContext, asked?: Partial<AgUiOptions>): string {
    const encoder = agUiWire.createEncoder(context, asked)
    return entries.map((entry) => encoder.encode(entry)).join('')
  }

  const eventsOf = (body: string): AgUiEvent[] =>
    parseSse(new TextEncoder().encode(body)).map(({ data }) => JSON.parse(data) as AgUiEvent)

  wireContract(agUiWire, {
    options,
    numRuns: 80,
    runs,
    judge({ body, state, context, options: { old } }) {
      expect(state).toBe('complete')
      expect(body).not.toContain('AFTER')
      expect(body).not.toContain('"NESTED"')
      const events = eventsOf(body)
      const runs = agUiRuns(events, { isWhole: true })
      if (context.resumedAt === undefined) expect(runs).toHaveLength(1)
      expect(events[0]).toMatchObject({ type: 'RUN_STARTED', threadId: 'thread-1', runId: 'run-1' })
      if (old === true) {
        expect(body).not.toContain('pendingToolCallIds')
        expect(body).not.toContain('"type":"cancelled"')
      }
    },
  })

  const isApproval = (entry: Entry) => entry.type === 'request' && entry.kind === 'approval'

  wireContract(
    { ...agUiWire, name: 'ag-ui live' },
    {
      numRuns: 60,
      options: fc.constant({ live: true }),
      follows: true,
      runs: runs.filter((entries) => !entries.some(isApproval)),
      judge: ({ body }) => void expect(agUiRuns(eventsOf(body), { isWhole: true })).toHaveLength(1),
    },
  )

  wireContract(agUiObjectsWire, { options, numRuns: 40 })

  test('ag-ui: a client that answers while the stream is open gets the same messages, and its own results', () => {
    fc.assert(
      fc.property(runs, (entries) => {
        const resumedAt = lastResume(entries)
        const other = eventsOf(encodeAll(entries, { resumedAt }))
        const live = eventsOf(encodeAll(entries, { resumedAt }, { live: true }))
        const isOwn = ({ type }: AgUiEvent) => /^(?:TEXT|REASONING|TOOL|CUSTOM)/u.test(type)
        const known = new Set(other.map((event) => JSON.stringify(event)))
        const more = live.filter((event) => isOwn(event) && !known.has(JSON.stringify(event)))
        expect(more.map(({ type }) => type).filter((type) => type !== 'TOOL_CALL_RESULT')).toEqual([])
        expect(live.filter((event) => isOwn(event) && !more.includes(event))).toEqual(other.filter(isOwn))
      }),
      { numRuns: often(100) },
    )
  })

  test.each([
    ['1.0', false],
    ['0.0.59', true],
  ])('the official client %s shows the answer of the run without an error', async (_, old) => {
    await fc.assert(
      fc.asyncProperty(runs, fc.boolean(), fc.boolean(), async (entries, live, traces) => {
        const body = encodeAll(entries, { resumedAt: lastResume(entries) }, { old, live, traces })
        const { messages, error } = await showAgUi(body, old)
        const last = eventsOf(body).at(-1)!
        expect(error).toBe(last.type === 'RUN_ERROR' ? last.message : undefined)
        if (last.type === 'RUN_ERROR' && last.code === 'interrupted') return
        const said = messages.flatMap(({ role, content }) =>
          (role === 'assistant' || role === 'reasoning') && typeof content === 'string' && content !== ''
            ? [content]
            : [],
        )
        expect(said.sort()).toEqual(wordsSaid(entries).filter((words) => words !== ''))
      }),
      { numRuns: often(150) },
    )
  })
})
