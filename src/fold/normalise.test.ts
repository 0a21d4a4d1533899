/** A source without a run: only parts, folds and the grammar. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toRecorded, type Entry } from '../part/entry.ts'
import type { ModelPart } from '../part/model-part.ts'
import type { Part, SourcePart } from '../part/part.ts'
import { noUsage } from '../part/usage.ts'
import { createCallIds } from './call-ids.ts'
import { createGrammar } from './grammar.ts'
import { createNormaliser } from './normalise.ts'
import { createOpenItems } from './open-items.ts'

const start: Part = {
  type: 'run-start',
  runId: 'r',
  agent: 'a',
  pipeline: '',
  threadId: 't',
  protocol: 'library',
  input: {},
}

/** A log that parts can be written to, as an importer of transcripts keeps one. */
function createTranscript() {
  const open = createOpenItems()
  const callIds = createCallIds()
  const entries: Entry[] = []
  let ids = 0
  const emit = (step: string, part: Part) => {
    const entry = { seq: entries.length + 1, timestamp: 0, step, ...toRecorded(part) } as Entry
    entries.push(entry)
    open.apply(entry)
    callIds.apply(entry)
  }
  const step = (path: string) => emit(path, { type: 'step-start', stepType: 'x', attempt: 1 })
  emit('', start)
  return {
    entries,
    step,
    /** Reads one source to its end. */
    read(path: string, parts: readonly SourcePart[], isTranscript = true) {
      const normaliser = createNormaliser({ path, emit, newId: () => `b${++ids}`, open, callIds, isTranscript })
      const from = entries.length
      for (const part of parts) normaliser.part(part)
      normaliser.end()
      return entries.slice(from)
    },
    /** Closes the run as a producer does, and judges the whole log. */
    faults() {
      const error = { code: 'ended', message: 'The transcript is over.' }
      for (const { step: at, part } of open.closing({ now: 0, outcome: 'unavailable', error })) emit(at, part)
      emit('', { type: 'run-end', outcome: 'completed', usage: noUsage })
      const grammar = createGrammar()
      return [...entries.map((entry) => grammar.check(entry)), grammar.end()].filter((fault) => fault !== undefined)
    },
  }
}

function readOne(...parts: SourcePart[]): string[] {
  const transcript = createTranscript()
  transcript.step('main/a')
  const lines = transcript.read('main/a', parts).map((entry) => {
    const { type } = entry
    if ('delta' in entry) return `${type} ${entry.id} ${entry.delta}`
    if ('toolCallId' in entry)
      return `${type} ${entry.toolCallId}${'result' in entry ? ` ${JSON.stringify(entry.result)}` : ''}`
    return 'id' in entry ? `${type} ${entry.id}` : type
  })
  expect(transcript.faults()).toEqual([])
  return lines
}

const call = (toolCallId: string, input = '{}'): ModelPart => ({ type: 'tool-call', toolCallId, toolName: 't', input })
const result = (toolCallId: string, value: string): ModelPart => {
  return { type: 'tool-result', toolCallId, toolName: 't', result: value }
}

describe('createNormaliser', () => {
  test('blocks get their own ids; a missing start is added, and open blocks are closed before finish', () => {
    const usage = {} as Extract<ModelPart, { type: 'finish' }>['usage']
    const lines = readOne(
      { type: 'text-delta', id: '0', delta: 'a' },
      { type: 'reasoning-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'b' },
      { type: 'text-end', id: '0' },
      { type: 'text-end', id: '0' },
      { type: 'tool-input-start', id: 'c', toolName: 't' },
      { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
      { type: 'text-delta', id: '0', delta: 'late' },
    )
    expect(lines).toEqual([
      'text-start b1',
      'text-delta b1 a',
      'reasoning-start b2',
      'text-delta b1 b',
      'text-end b1',
      'tool-input-start c',
      'reasoning-end b2',
      'tool-input-end c',
      'finish',
      'text-start b3',
      'text-delta b3 late',
      'text-end b3',
    ])
  })

  test('a block that starts again ends first', () => {
    const lines = readOne(
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'a' },
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'b' },
    )
    expect(lines).toEqual([
      'text-start b1',
      'text-delta b1 a',
      'text-end b1',
      'text-start b2',
      'text-delta b2 b',
      'text-end b2',
    ])
  })

  test('input, call, result: in that order, each once', () => {
    const lines = readOne(
      result('c', 'early'),
      { type: 'tool-input-start', id: 'c', toolName: 't' },
      { type: 'tool-input-start', id: 'c', toolName: 't' },
      { type: 'tool-input-delta', id: 'c', delta: '{' },
      { type: 'tool-input-delta', id: 'd', delta: 'without its start' },
      call('c'),
      result('c', 'again'),
      call('d'),
      { type: 'tool-input-start', id: 'd', toolName: 't' },
      { type: 'tool-input-delta', id: 'd', delta: 'behind its call' },
      call('d'),
      result('d', 'one'),
    )
    expect(lines).toEqual([
      'tool-input-start c',
      'tool-input-delta c {',
      'tool-input-end c',
      'tool-call c',
      'tool-result c "early"',
      'tool-call d',
      'tool-result d "one"',
    ])
  })

  test('a result whose call never comes gets one in a transcript, in the name that the log has for it', () => {
    const transcript = createTranscript()
    for (const path of ['main/a', 'main/a/1', 'main/b', 'main/b/1']) transcript.step(path)
    transcript.read('main/a/1', [call('c'), result('c', 'one')])
    expect(transcript.read('main/b/1', [result('c', 'a model’s')], false)).toEqual([])
    expect(transcript.read('main/b/1', [result('c', 'two')])).toMatchObject([
      { type: 'tool-call', toolCallId: 'c-2', providerCallId: 'c', providerExecuted: true, input: '{}' },
      { type: 'tool-result', toolCallId: 'c-2', result: 'two' },
    ])
    expect(transcript.faults()).toEqual([])
  })

  test('a result may come with a later answer of the same loop; its repetition is dropped', () => {
    const transcript = createTranscript()
    for (const path of ['main/a', 'main/a/1', 'main/a/2']) transcript.step(path)
    transcript.read('main/a/1', [call('c')])
    expect(transcript.read('main/a/2', [result('c', 'late'), result('c', 'again')])).toMatchObject([{ result: 'late' }])
    expect(transcript.faults()).toEqual([])
  })

  test('leading custom parts wait for the first content', () => {
    const custom: ModelPart = { type: 'custom', kind: 'p.k' }
    const metadata: ModelPart = { type: 'response-metadata', id: 'm' }
    expect(readOne(custom, metadata, { type: 'cli-output', stream: 'stdout', raw: '…' }, call('c'))).toEqual([
      'response-metadata m',
      'cli-output',
      'custom',
      'tool-call c',
    ])
  })

  const id = fc.constantFrom('0', '1', 'c')
  const delta = fc.string({ maxLength: 3 })
  const anyPart: fc.Arbitrary<SourcePart> = fc.oneof(
    fc.record({ type: fc.constantFrom('text-start' as const, 'reasoning-start', 'text-end', 'reasoning-end'), id }),
    fc.record({ type: fc.constantFrom('text-delta' as const, 'reasoning-delta'), id, delta }),
    fc.record({ type: fc.constant('tool-input-start' as const), id, toolName: fc.constant('t') }),
    fc.record({ type: fc.constant('tool-input-delta' as const), id, delta }),
    fc.record({ type: fc.constant('tool-input-end' as const), id }),
    fc.record({ type: fc.constant('tool-call' as const), toolCallId: id, toolName: fc.constant('t'), input: delta }),
    fc.record({
      type: fc.constant('tool-result' as const),
      toolCallId: id,
      toolName: fc.constant('t'),
      result: delta,
      preliminary: fc.boolean(),
    }),
    fc.constantFrom<SourcePart[]>(
      { type: 'stream-start', warnings: [] },
      { type: 'response-metadata', id: 'm' },
      { type: 'custom', kind: 'p.k' },
      { type: 'file', mediaType: 'text/plain', data: 'YQ==' },
      { type: 'source', sourceType: 'url', id: 's', url: 'https://example.com' },
      { type: 'raw', rawValue: 1 },
      { type: 'error', error: new Error('broken') },
      { type: 'session-info', sessionId: 's' },
      { type: 'cli-output', stream: 'stderr', raw: 'x' },
      { type: 'data', name: 'd', data: 1 },
      { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage: {} as never },
    ),
  )

  /** Nothing of these is ever lost. */
  const kept: readonly SourcePart['type'][] = [
    ...(['text-delta', 'reasoning-delta', 'stream-start', 'response-metadata', 'custom', 'file', 'source'] as const),
    ...(['raw', 'error', 'finish', 'session-info', 'cli-output', 'data'] as const),
  ]

  test('any source gives legal parts, and loses only repetitions', () => {
    let results = 0
    const answers = fc.array(fc.record({ parts: fc.array(anyPart, { maxLength: 25 }), isTranscript: fc.boolean() }), {
      minLength: 1,
      maxLength: 3,
    })
    const property = fc.property(answers, (sources) => {
      const transcript = createTranscript()
      // Two loops that use the same ids, and a second answer in the first.
      for (const path of ['main/a', 'main/b']) transcript.step(path)
      for (const [i, { parts, isTranscript }] of sources.entries()) {
        const path = ['main/a/1', 'main/b/1', 'main/a/2'][i]!
        transcript.step(path)
        const emitted = transcript.read(path, parts, isTranscript)
        const said = (list: readonly object[], type: string) =>
          list.flatMap((part) => ((part as Part).type === type ? [(part as { delta?: string }).delta] : []))
        for (const type of kept) expect(said(emitted, type)).toEqual(said(parts, type))
        const made = new Set(
          transcript.entries.flatMap((entry) => {
            const isOurs = entry.type === 'tool-call' && entry.step.startsWith(path.slice(0, 6))
            return isOurs ? [entry.providerCallId ?? entry.toolCallId] : []
          }),
        )
        for (const part of parts) {
          const isCall = part.type === 'tool-call' || (part.type === 'tool-result' && isTranscript)
          if (isCall) expect(made).toContain(part.toolCallId)
        }
        results += said(emitted, 'tool-result').length
      }
      expect(transcript.faults()).toEqual([])
    })
    fc.assert(property, { numRuns: 500 })
    expect(results).toBeGreaterThan(100)
  })
})
