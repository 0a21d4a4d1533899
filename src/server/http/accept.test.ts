import { expect, test } from 'vitest'
import { preferredType } from './query.ts'

const types = ['text/plain', 'text/event-stream'] as const

test.each([
  ['text/plain', 'text/plain'],
  ['TEXT/Event-Stream; charset=utf-8', 'text/event-stream'],
  ['text/event-stream, text/plain', 'text/event-stream'],
  ['text/plain;q=0.5, text/event-stream', 'text/event-stream'],
  ['text/plain ; q=0.5 , text/event-stream ; q=0.4', 'text/plain'],
  ['text/plain;q=0, */*', undefined],
  ['text/plain;q=0, text/event-stream;q=0.1', 'text/event-stream'],
  ['text/plain;q=x', undefined],
  ['*/*', undefined],
  ['*/*;q=0.1, text/plain', 'text/plain'],
  ['text/*', undefined],
  ['application/json, text/plainer', undefined],
  ['', undefined],
])('%j: %s', (accept, wanted) => {
  expect(preferredType(new Request('http://x', { headers: { accept } }), types)).toBe(wanted)
})

test('without the header', () => expect(preferredType(new Request('http://x'), types)).toBeUndefined())
