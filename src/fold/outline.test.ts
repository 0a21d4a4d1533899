/** An outline draws what the log says: cut anywhere it is the outline of that prefix, and a fold that goes on from it goes on the same. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryNestedRun } from '../../test/arbitrary-run.ts'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import type { Entry } from '../part/entry.ts'
import { clipOutline, mergeOutline } from './merge-outline.ts'
import { createCompaction } from './compaction.ts'
import { createOutline } from './outline.ts'
import { buildTree, labelOf } from './step-tree.ts'
import type { OutlineBlock, OutlineItem, OutlineStep } from './outline-item.ts'

const folder = new URL('../wire/golden/', import.meta.url)
const recorded = readdirSync(folder)
  .filter((name) => name.endsWith('.ndjson'))
  .map((name): [string, Entry[]] => [name, readFileSync(new URL(name, folder), 'utf8').trim().split('\n').map(parse)])

function parse(line: string): Entry {
  return JSON.parse(line) as Entry
}

function outlineOf(entries: readonly Entry[]): OutlineItem[] {
  const outline = createOutline()
  for (const entry of entries) outline.apply(entry)
  return outline.items()
}

/** Without what `clipOutline` estimates of items that are open. */
function drawn(items: readonly OutlineItem[]): unknown[] {
  return items.map((item) => {
    if (item.k === 'step') return item.end === undefined ? { ...item, to: 0 } : item
    if (item.k === 'mark') return { ...item, n: 0, to: 0, bytes: 0, progress: undefined }
    return item.end === undefined ? { ...item, n: item.n > 0, chars: 0, rate: 0, per: 0, to: 0 } : item
  })
}

function checkCuts(entries: readonly Entry[], cuts: Iterable<number>): void {
  const whole = outlineOf(entries)
  for (const cut of cuts) {
    const last = entries[cut]!.seq
    expect(drawn(clipOutline(whole, last)), `cut at ${last}`).toEqual(drawn(outlineOf(entries.slice(0, cut + 1))))
  }
}

/** Entries taken in pieces, by two folds of which the second goes on from the items of the first. */
function inPieces(entries: readonly Entry[], cut: number, settled: boolean): OutlineItem[] {
  const sent: OutlineItem[] = []
  let outline = createOutline()
  for (const [i, entry] of entries.entries()) {
    if (i === cut) {
      sent.push(...outline.take())
      outline = createOutline(sent)
    }
    outline.apply(entry)
    outline.apply(entry)
    if (i % 3 === 0) sent.push(...outline.take({ settled }))
  }
  return mergeOutline([...sent, ...outline.take()])
}

describe('createOutline', () => {
  test.each(recorded)('%s: cut at every entry', (_name, entries) => {
    checkCuts(entries, entries.keys())
    for (const cut of entries.keys()) expect(inPieces(entries, cut, cut % 2 === 0)).toEqual(outlineOf(entries))
  })

  test('random runs, with crashes, suspends and agents that are called', () => {
    fc.assert(
      fc.property(arbitraryNestedRun, fc.nat(), fc.boolean(), (entries, random, settled) => {
        checkCuts(entries, [random % entries.length, entries.length >> 1, entries.length - 1])
        expect(inPieces(entries, random % entries.length, settled)).toEqual(outlineOf(entries))
      }),
      { numRuns: 100 },
    )
  })

  test('every entry is in one item, so that the outline knows how far it is, and a mark names its call or request', () => {
    fc.assert(
      fc.property(arbitraryNestedRun, (entries) => {
        const outline = createOutline()
        for (const entry of entries) {
          outline.apply(entry)
          expect(outline.lastSeq).toBe(entry.seq)
          expect(createOutline(outline.items()).lastSeq).toBe(entry.seq)
        }
        const about = entries.map((entry) => {
          if (entry.type === 'request' || entry.type === 'response') return entry.requestId
          return entry.type === 'tool-call' || entry.type === 'tool-result' ? entry.toolCallId : undefined
        })
        for (const item of outline.items()) if (item.k === 'mark') expect(item.id).toBe(about[item.seq - 1])
      }),
      { numRuns: 30 },
    )
  })

  test('a compacted run has the outline of the run as it was, but for its rate', () => {
    for (const [name, entries] of recorded) {
      // The files have a delta each ms, so that all of them are in the first slices.
      const total = (item: OutlineItem) =>
        item.k === 'block' ? { ...item, rate: item.rate?.reduce((a, b) => a + b) } : item
      expect(outlineOf(createCompaction()(entries)).map(total), name).toEqual(outlineOf(entries).map(total))
    }
  })

  const path = 'main/a/1'
  const begun: Item[] = [
    { step: '', part: startPart },
    { step: 'main/a', part: { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } },
    { step: path, part: { type: 'step-start', stepType: 'model-call', attempt: 1 } },
  ]

  test('a step that a crash ended is superseded, and its next attempt is a step of its own', () => {
    const reset = buildRun([
      ...begun,
      { step: path, part: { type: 'text-start', id: 't' } },
      { step: path, part: { type: 'text-delta', id: 't', delta: 'lost' } },
      { step: path, part: { type: 'step-reset', attempt: 1 } },
      { step: path, part: { type: 'step-start', stepType: 'model-call', attempt: 2 } },
    ])
    const items = outlineOf(reset)
    const steps = items.filter((item): item is OutlineStep => item.k === 'step' && item.path === path)
    expect(steps.map(({ attempt, superseded, to }) => [attempt, superseded, to])).toEqual([
      [1, 6, 6],
      [2, undefined, 7],
    ])
    expect(items.find(({ k }) => k === 'block')).toMatchObject({ superseded: 6, end: reset[5]!.timestamp, chars: 4 })
    expect(items.some((item) => item.k === 'mark' && item.type === 'step-reset')).toBe(true)
    const [, entries] = recorded.find(([name]) => name === 'reset.ndjson')!
    const superseded = outlineOf(entries).filter((item) => item.superseded !== undefined)
    expect(superseded.map((item) => [item.k === 'mark' ? item.type : item.k, item.superseded])).toEqual([
      ['step', 8],
      ['prompt', 8],
      ['stream-start', 8],
      ['block', 8],
    ])
    const before = clipOutline(items, 5)
    expect(before.some(({ superseded }) => superseded !== undefined)).toBe(false)
    expect(before.find(({ k }) => k === 'block')).not.toHaveProperty('end')
  })

  test('the outline keeps no text, and its rate has at most 64 slices', () => {
    const text = 'x'.repeat(1000)
    // The last one comes when a 65th slice of 512 ms would begin.
    const n = 4097
    const entries = buildRun([
      ...begun,
      { step: path, part: { type: 'text-start', id: 't' } },
      ...Array.from({ length: n }, (): Item => ({ step: path, part: { type: 'text-delta', id: 't', delta: text } })),
    ]).map((entry, i) => ({ ...entry, timestamp: i * 8 }))
    const block = outlineOf(entries).find((item): item is OutlineBlock => item.k === 'block')!
    expect(block).toMatchObject({ n, chars: n * 1000, first: 32, from: 4, to: n + 4 })
    expect(block.rate!.length).toBeGreaterThan(32)
    expect(block.rate!.length).toBeLessThanOrEqual(64)
    expect(block.rate!.reduce((a, b) => a + b)).toBe(n * 1000)
    expect(block.rate!.length * block.per!).toBeGreaterThan((n - 1) * 8)
    expect(JSON.stringify(block).length).toBeLessThan(700)
    const compacted = outlineOf(createCompaction()(entries)).find((item): item is OutlineBlock => item.k === 'block')!
    expect(compacted).toMatchObject({ n, chars: n * 1000, per: block.per! })
    expect(compacted.rate!.length).toBe(block.rate!.length)
    for (const [i, chars] of compacted.rate!.slice(0, -2).entries()) {
      expect(Math.abs(chars / block.rate![i]! - 1)).toBeLessThan(0.5)
    }
  })

  test('entries that come as often as deltas are one mark', () => {
    const raw = (n: number): Item => ({ step: path, part: { type: 'raw', rawValue: n } })
    const entries = buildRun([
      ...begun,
      raw(1),
      { step: path, part: { type: 'text-start', id: 't' } },
      raw(2),
      { step: path, part: { type: 'text-delta', id: 't', delta: 'a' } },
      raw(3),
      { step: path, part: { type: 'text-end', id: 't' } },
      { step: path, part: { type: 'warning', code: 'w', message: 'y'.repeat(500) } },
      raw(4),
    ])
    const marks = outlineOf(entries).filter((item) => item.k === 'mark' && item.step === path)
    expect(marks).toMatchObject([{ seq: 4, to: 8, n: 3 }, { type: 'warning' }, { type: 'raw', seq: 11 }])
    expect(marks[1]).toMatchObject({ note: `${'y'.repeat(199)}…` })
  })

  test('what a call says of itself while it goes on is shown beside it, the newest alone, until it has ended', () => {
    const step = `${path}/1`
    const tool = { toolCallId: 'c', toolName: 'look' }
    const told = (result: string): Item => ({ step, part: { type: 'tool-result', ...tool, result, preliminary: true } })
    const items: Item[] = [
      ...begun,
      { step: path, part: { type: 'tool-call', ...tool, input: '{}' } },
      { step, part: { type: 'step-start', stepType: 'tool-call', attempt: 1, ...tool } },
      told('1 of 9'),
      told('2 of\n9'),
    ]
    const detail = (given: Item[]) => labelOf(buildTree(outlineOf(buildRun(given))).at(step)!).detail
    expect(detail(items)).toBe('2 of 9')
    const end: Item = { step, part: { type: 'step-finish', duration: 1 } }
    expect(detail([...items, { step, part: { type: 'tool-result', ...tool, result: 'done' } }, end])).toBe('')
  })

  test('an error is brief: the log has the rest', () => {
    const error = { code: 'provider', message: 'm'.repeat(1000), detail: 'secret of the provider' }
    const entries = buildRun([
      ...begun,
      { step: path, part: { type: 'error', error } },
      { step: path, part: { type: 'step-finish', duration: 1, error } },
    ])
    expect(JSON.stringify(outlineOf(entries))).not.toContain('secret of the provider')
    expect(JSON.stringify(outlineOf(entries)).length).toBeLessThan(2000)
    expect(outlineOf(entries)).toContainEqual(expect.objectContaining({ k: 'mark', type: 'error', failed: true }))
  })

  test('entries with missing fields still give an outline', () => {
    const types = [
      'finish',
      'error',
      'retry',
      'usage',
      'tool-call',
      'text-delta',
      'prompt',
      'run-end',
      'response',
      'raw',
      'x',
    ]
    const odd = types.map((type) => ({ step: path, part: { type } as unknown as Item['part'] }))
    const entries = buildRun([...begun, ...odd, ...odd, { step: path, part: { type: 'step-finish', duration: 1 } }])
    const items = outlineOf(entries)
    expect(items.filter(({ k }) => k === 'mark')).toHaveLength(1 + 2 * (types.length - 1))
    checkCuts(entries, entries.keys())
  })
})
