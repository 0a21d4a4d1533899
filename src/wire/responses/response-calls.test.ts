/** A client runs what is done, so a call is done only when it is handed over. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../../part/entry.ts'
import { responsesWire } from './responses.ts'

const recorded = readFileSync(new URL('../golden/client-tools.ndjson', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Entry)

interface Event {
  type: string
  item?: { type: string; call_id: string; name: string; namespace?: string; input?: string }
  response?: { status: string; error: { message: string } | null; output: object[] }
}

function events(entries: readonly Entry[]): Event[] {
  const encoder = responsesWire.createEncoder()
  const body = entries.map((entry) => encoder.encode(entry)).join('')
  return [...body.matchAll(/^data: (\{.*\})$/gmu)].map(([, json]) => JSON.parse(json!) as Event)
}

const doneCalls = (all: readonly Event[]) =>
  all.flatMap(({ type, item }) =>
    type === 'response.output_item.done' && item?.type !== 'message' ? [item!.call_id] : [],
  )

describe('calls for the client', () => {
  test('handed over: each is done once', () => {
    const all = events(recorded)
    expect(doneCalls(all)).toEqual(['call_a', 'call_b', 'call_c'])
    expect(all.at(-1)!.response!.status).toBe('completed')
  })

  test.each(['denied', 'unavailable', 'aborted', undefined] as const)(
    'with the outcome %s: never done, and the response fails',
    (outcome) => {
      const all = events(
        recorded.map((entry): Entry => {
          if (entry.type !== 'tool-result' || entry.toolCallId !== 'call_b') return entry
          const { outcome: _, ...rest } = entry
          return outcome === undefined ? rest : { ...rest, outcome }
        }),
      )
      expect(doneCalls(all)).toEqual(['call_a', 'call_c'])
      expect(all.at(-1)).toMatchObject({
        type: 'response.failed',
        response: { error: { message: expect.stringContaining('must not be run') } },
      })
    },
  )

  test('an attempt that was lost while a call was open: the response fails, because a client may have begun to run it', () => {
    const at = recorded.findIndex(({ type }) => type === 'tool-input-delta') + 1
    const { step, timestamp } = recorded[at]!
    const reset = { type: 'step-reset', seq: at + 1, step, timestamp, attempt: 2 } as Entry
    const all = events([...recorded.slice(0, at), reset])
    expect(doneCalls(all)).toEqual([])
    expect(all.at(-1)!.type).toBe('response.failed')
  })

  test('an attempt that was lost before any call: its texts are incomplete, and the next one goes on', () => {
    const at = recorded.findIndex(({ type }) => type === 'text-delta') + 1
    const { step, timestamp } = recorded[at]!
    const reset = { type: 'step-reset', seq: at + 1, step, timestamp, attempt: 2 } as Entry
    const all = events([...recorded.slice(0, at), reset])
    expect(all.at(-1)).toMatchObject({ type: 'response.output_item.done', item: { status: 'incomplete' } })
  })
})
