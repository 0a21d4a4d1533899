/** What an import refuses, and that no run is before itself, called by itself, or nested without end. */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Entry, EntryOf } from '../../part/entry.ts'
import { asRecorded } from '../../part/recording.ts'
import { conversation, conversationPage } from '../../runtime/conversation.ts'
import { endEntry, startEntry } from '../../store/example-run.contract.ts'
import { memoryStore } from '../../store/memory-store.ts'
import { sqliteStore } from '../../store/sqlite/store.ts'
import { longestLine } from './check-recording.ts'
import { importNdjson } from './import.ts'

const write = (entries: readonly object[]) => entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
const run = (id: string, more: object = {}) => write([startEntry(id, more), endEntry(2)])
const start = startEntry('r')
const refused = (text: string | Uint8Array) =>
  importNdjson(memoryStore(), [text]).then(
    () => 'imported',
    (error: Error) => error.message,
  )
/** A step so deep, with all around it. */
const nested = (depth: number): Entry[] => {
  const paths = Array.from({ length: depth - 1 }, (_, i) =>
    ['main', ...Array.from({ length: i + 1 }, () => 's')].join('/'),
  )
  const step = { type: 'step-start', stepType: 'llm', attempt: 1 }
  const parts = [
    ...paths.map((path) => ({ step: path, ...step })),
    ...paths.toReversed().map((path) => ({ step: path, type: 'step-finish', duration: 1 })),
  ]
  const inside = parts.map((part, i) => ({ seq: i + 2, timestamp: 1, ...part }))
  return [start, ...(inside as Entry[]), endEntry(inside.length + 2)]
}

describe('importNdjson', () => {
  test.each<[string, string | Uint8Array, string]>([
    ['an agent that is a number', write([{ ...start, agent: 5 }]), 'line 1: agent must be 1 to 256 characters'],
    ['an id that is a folder', write([{ ...start, runId: '..' }]), 'line 1: runId must be'],
    [
      'an id with half a character',
      '{"runId":"\\ud800",' + write([{ ...start, runId: undefined }]).slice(1),
      'line 1: runId',
    ],
    ['an id that is too long', write([{ ...start, threadId: 'x'.repeat(2049) }]), 'line 1: threadId must be'],
    ['no thread', write([{ ...start, threadId: undefined }]), 'line 1: threadId is missing'],
    [
      'a message',
      write([{ ...start, input: { messages: [{ role: 'user', content: [{ type: 'text' }] }] } }]),
      'line 1: input.messages[0].content[0].text is missing',
    ],
    [
      'an outcome',
      `${write([start, { ...endEntry(2), outcome: 'fine' }])}`,
      'line 2: outcome must be one of completed, failed',
    ],
    [
      'a count',
      `\n${write([start, { ...endEntry(2), usage: { inputTokens: '5' } }])}`,
      'line 3: usage.inputTokens must be a number',
    ],
    ['a number out of range', write([start]) + '{"seq":1e999}\n', 'line 2: a number is out of range'],
    ['a time', write([{ ...start, timestamp: 1e18 }]), 'line 1: timestamp must be a number from 0'],
    [
      'an unknown type',
      write([start, { seq: 2, timestamp: 1, step: '', type: 'toString' }]),
      'line 2: type must be one that this version knows',
    ],
    ['an order', write([start, endEntry(3)]), 'line 2: entry 3 (run-end): seq is 3, expected 2'],
    [
      'a reset of nothing',
      write([start, { seq: 2, timestamp: 1, step: 'main/a', type: 'step-reset', attempt: 1 }]),
      'no attempt to reset',
    ],
    ['bytes', Buffer.from(`${write([start])}{"seq":"\xff"}\n`, 'latin1'), 'line 2: the line is not valid UTF-8'],
    [
      'a line of more than 16 MiB',
      write([start]) + ' '.repeat(longestLine + 1),
      'line 2: the line is longer than 16 MiB',
    ],
    [
      'such a line among others',
      write([start]) + ' '.repeat(longestLine + 1) + run('s'),
      'line 2: the line is longer than 16 MiB',
    ],
    ['a step that is nested too deep', write(nested(257)), 'line 257: step must not be nested deeper than 256'],
    ['the inbox of a conversation as an id', run('thread:t'), 'line 1: runId must not be store-test, nor begin'],
    ['the inbox of a key as an id', run('key:k'), 'line 1: runId must not be store-test, nor begin'],
    ['the inbox of the keys of access as an id', run('access:keys'), 'line 1: runId must not be store-test, nor begin'],
    ['a run before itself', run('r', { previousRunId: 'r' }), 'line 1: previousRunId is the run itself'],
    ['a run that calls itself', run('r', { parentRunId: 'r' }), 'line 1: parentRunId is the run itself'],
    [
      'a fork of itself',
      run('r', { forkedFrom: { runId: 'r', seq: 1 } }),
      'line 1: forkedFrom.runId is the run itself',
    ],
  ])('%s is refused with its line and field', async (_, text, message) => {
    expect(await refused(text)).toContain(message)
  })

  test('what is at a limit is imported, and fields that nobody knows are kept', async () => {
    expect(await refused(write(nested(256)))).toBe('imported')
    const store = memoryStore()
    const source = write([
      { ...startEntry('r', { threadId: 'x'.repeat(2048) }), later: { any: ['thing'] } },
      endEntry(2),
    ])
    await importNdjson(store, source)
    const stored: Entry[] = []
    for await (const batch of store.log.read('r')) stored.push(...batch)
    const [start, ...rest] = stored as [EntryOf<'run-start'>, ...Entry[]]
    expect(write([asRecorded(start), ...rest])).toBe(source)
  })

  test('runs that follow or call each other in a circle: the one that would close it is refused', async () => {
    const store = memoryStore()
    for (const field of ['previousRunId', 'parentRunId'] as const) {
      const [a, b, c] = ['a', 'b', 'c'].map((name) => field + name)
      await importNdjson(store, run(a!, { [field]: b }))
      await importNdjson(store, run(b!, { [field]: c }))
      await expect(importNdjson(store, run(c!, { [field]: a }))).rejects.toThrow(`line 1: ${field}: run ${a}`)
    }
  })

  test('calls may be nested 256 deep, and a conversation may have more turns', async () => {
    // A store in memory keeps the last runs only.
    const store = sqliteStore(':memory:')
    onTestFinished(() => store.close())
    await importNdjson(store, run('p0'))
    for (let i = 1; i <= 256; i++) await importNdjson(store, run(`p${i}`, { parentRunId: `p${i - 1}` }))
    await expect(importNdjson(store, run('p257', { parentRunId: 'p256' }))).rejects.toThrow('nested deeper than 256')
    const said = (i: number) => ({ threadId: 't', input: { messages: [{ role: 'user', content: `${i}` }] } })
    await importNdjson(store, run('t0', said(0)))
    for (let i = 1; i <= 300; i++) await importNdjson(store, run(`t${i}`, { previousRunId: `t${i - 1}`, ...said(i) }))
    const { messages } = await conversation(store, 't', 't300')
    expect(messages.map(({ content }) => content)).toEqual(Array.from({ length: 301 }, (_, i) => `${i}`))
  })

  test.each([
    ['a', 'a'],
    ['a', 'b'],
    ['a', 'b', 'c', 'd'],
  ])('whoever reads a conversation that goes in a circle comes to an end: %s, %s', async (...names) => {
    // As another program has left them.
    const store = memoryStore()
    const ids = [...new Set(names)]
    for (const [i, id] of ids.entries()) {
      const input = { messages: [{ role: 'user', content: id }] }
      await store.log.append(id, 1, [startEntry(id, { previousRunId: ids[(i + 1) % ids.length]!, input }), endEntry(2)])
    }
    const whole = await conversation(store, 'thread-1', 'a')
    expect(whole.messages.map(({ content }) => content)).toEqual(ids.toReversed())
    const { messages } = await conversationPage(store, 'thread-1', 'a', { limit: 50 })
    expect(messages).toEqual(whole.messages)
  })
})
