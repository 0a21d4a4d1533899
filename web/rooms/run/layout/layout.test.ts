/** What the timeline of a run draws: gaps, bars, ticks, activity, the tree and the rows of the log. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../../../test/build-run.ts'
import { clipOutline } from '../../../../src/fold/merge-outline.ts'
import { createOutline } from '../../../../src/fold/outline.ts'
import type { OutlineItem } from '../../../../src/fold/outline-item.ts'
import { agentResult, createAgentCalls } from '../../../../src/fold/agent-calls.ts'
import { createRunFold } from '../../../../src/fold/run-fold.ts'
import { isDelta, type Entry } from '../../../../src/part/entry.ts'
import { measureActivity } from './activity.ts'
import { axisMarks } from './axis.ts'
import { placeSegments, segmentsOf, ticksOf } from './bars.ts'
import { readFacts, timeOf } from './facts.ts'
import { logRows, rowAt, rowsUntil } from '../../../../src/fold/log-rows.ts'
import { createScale, panView, textToView, viewToText, wholeView, zoomView } from './scale.ts'
import { busySpans, idleGaps, mergeSpans, suspendedSpans, withoutSpans } from './spans.ts'
import { buildTree, flattenTree, labelOf, stateOf } from '../../../../src/fold/step-tree.ts'

const folder = new URL('../../../../src/wire/golden/', import.meta.url)
const recorded = readdirSync(folder)
  .filter((name) => name.endsWith('.ndjson'))
  .map((name): [string, Entry[]] => [
    name,
    readFileSync(new URL(name, folder), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry),
  ])

function outlineOf(entries: readonly Entry[]): OutlineItem[] {
  const outline = createOutline()
  for (const entry of entries) outline.apply(entry)
  return outline.items()
}

/** Parts with the times at which they were stored. */
function timed(items: readonly [time: number, item: Item][]): Entry[] {
  return buildRun(items.map(([, item]) => item)).map((entry, i) => ({ ...entry, timestamp: items[i]![0] }))
}

const path = 'main/a/1'
const step = (at: string, kind: string, more: object = {}): Item =>
  ({ step: at, part: { type: 'step-start', stepType: kind, kind, attempt: 1, ...more } }) as Item
const end = (at: string): Item => ({ step: at, part: { type: 'step-finish', duration: 1 } })

/** A model is asked at 100, opens at 300, thinks from 400 to 600, speaks from 700 to 1000, and tried twice. */
const call = timed([
  [0, { step: '', part: startPart }],
  [50, step('main/a', 'tool-loop', { answer: true })],
  [100, step(path, 'model-call')],
  [150, { step: path, part: { type: 'retry', attempt: 2, delay: 0, error: { code: 'busy', message: 'Busy.' } } }],
  [300, { step: path, part: { type: 'stream-start', warnings: [] } }],
  [390, { step: path, part: { type: 'reasoning-start', id: 'r' } }],
  [400, { step: path, part: { type: 'reasoning-delta', id: 'r', delta: 'Hm' } }],
  [600, { step: path, part: { type: 'reasoning-end', id: 'r' } }],
  [690, { step: path, part: { type: 'text-start', id: 't' } }],
  [700, { step: path, part: { type: 'text-delta', id: 't', delta: 'Hi' } }],
  [1000, { step: path, part: { type: 'text-end', id: 't' } }],
  [
    1000,
    {
      step: path,
      part: { type: 'usage', model: 'm', usage: { outputTokens: 30, totalTokens: 40, source: 'reported' }, cost: 0.5 },
    },
  ],
  [1010, end(path)],
  [1020, end('main/a')],
  [1100, { step: '', part: { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } } }],
])

test('a model call has its phases: the wait, the first token, then what it streams', () => {
  const tree = buildTree(outlineOf(call))
  const model = tree.at(path)!
  expect(segmentsOf(model, 2000, []).map(({ phase, from, to }) => [phase, from, to])).toEqual([
    ['wait', 100, 300],
    ['first', 300, 400],
    ['reasoning', 400, 600],
    ['gap', 600, 700],
    ['text', 700, 1000],
    ['gap', 1000, 1010],
  ])
  expect(ticksOf(model.marks)).toMatchObject([{ kind: 'retry', at: 150, note: 'Busy.' }])
  expect(segmentsOf(tree.at('main/a')!, 2000, [])).toEqual([{ phase: 'group', from: 50, to: 1020 }])
})

test('a model call that goes on ends now', () => {
  const tree = buildTree(clipOutline(outlineOf(call), 7))
  expect(segmentsOf(tree.at(path)!, 500, []).at(-1)).toEqual({ phase: 'reasoning', from: 400, to: 500 })
  const early = buildTree(clipOutline(outlineOf(call), 4))
  expect(segmentsOf(early.at(path)!, 180, [])).toEqual([{ phase: 'wait', from: 100, to: 180 }])
})

test('the header: queue, first token, speed, usage, cost, retries', () => {
  const facts = readFacts(buildTree(outlineOf(call)), 9999)
  expect(facts).toMatchObject({
    state: 'ended',
    durationMs: 1100,
    queueMs: 50,
    firstTokenMs: 400,
    cost: 0.5,
    retries: 1,
  })
  expect(facts.usage?.totalTokens).toBe(40)
  expect(facts.tokensPerSecond).toBeCloseTo(30 / 0.6)
})

test('a fork counts from when it was forked: its duration, its wait, its first token', () => {
  const fork = { runId: 'source', seq: 12, at: 60_000 }
  const said = (at: number, id: string): [number, Item][] => [
    [at, { step: 'main/b', part: { type: 'text-start', id } }],
    [at, { step: 'main/b', part: { type: 'text-delta', id, delta: 'Hi' } }],
  ]
  // What it shares has waited for an answer, too, until it was forked.
  const forked = timed([
    [0, { step: '', part: { ...startPart, forkedFrom: fork } as Item['part'] }],
    ...call.slice(1, 11).map((entry): [number, Item] => [entry.timestamp, { step: entry.step, part: entry }]),
    [1020, { step: '', part: { type: 'suspend', requests: [] } }],
    [60_010, { step: '', part: { type: 'resume', protocol: 'api' } }],
    [60_020, step('main/b', 'task', { answer: true })],
    [60_020, { step: '', part: { type: 'suspend', requests: [] } }],
    [70_000, { step: '', part: { type: 'resume', protocol: 'api' } }],
    ...said(70_005, 't'),
    [70_100, { step: '', part: { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } } }],
  ]).map((entry, i) => ({ ...entry, seq: i + 1 }))
  expect(readFacts(buildTree(outlineOf(forked)), 0)).toMatchObject({
    startedAt: 60_000,
    suspendedMs: 10 + 9980,
    durationMs: 110,
    queueMs: 20,
    firstTokenMs: 15,
  })
})

test('time in which the run was suspended is not counted, and a request is open until it is answered', () => {
  const asks = timed([
    [0, { step: '', part: startPart }],
    [0, step('main/a', 'approval', { toolCallId: 'c', toolName: 'pay' })],
    [
      10,
      {
        step: 'main/a',
        part: {
          type: 'request',
          requestId: 'r',
          kind: 'approval',
          toolCallId: 'c',
          toolName: 'pay',
          input: {},
          deadline: 0,
        },
      },
    ],
    [20, { step: '', part: { type: 'suspend', requests: ['r'] } }],
    [7_200_020, { step: 'main/a', part: { type: 'response', requestId: 'r', outcome: 'answered' } }],
    [7_200_030, { step: '', part: { type: 'resume', protocol: 'ui' } }],
    [7_200_100, end('main/a')],
    [7_200_100, { step: '', part: { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } } }],
  ])
  const items = outlineOf(asks)
  const open = readFacts(buildTree(clipOutline(items, 4)), 1020)
  expect(open).toMatchObject({ state: 'suspended', durationMs: 20, suspendedMs: 1000 })
  expect(open.open.map(({ id }) => id)).toEqual(['r'])
  const tree = buildTree(items)
  expect(readFacts(tree, 0)).toMatchObject({ durationMs: 90, suspendedMs: 7_200_010, open: [] })
  const suspended = suspendedSpans(tree.marks, 0)
  expect(segmentsOf(tree.at('main/a')!, 0, suspended)).toEqual([{ phase: 'ask', from: 0, to: 7_200_100 }])
  const gaps = idleGaps(busySpans(tree, 7_200_100, suspended))
  expect(gaps).toEqual([{ from: 20, to: 7_200_030 }])
})

test('gaps over 2 s and 5 % of the busy time are collapsed, others are drawn to scale', () => {
  const spans = (...pairs: [number, number][]) => pairs.map(([from, to]) => ({ from, to }))
  expect(idleGaps(spans([0, 100], [2100, 3000]))).toEqual([])
  expect(idleGaps(spans([0, 100], [2101, 3000]))).toEqual(spans([100, 2101]))
  expect(idleGaps(spans([0, 50_000], [54_000, 100_000]))).toEqual([])
  const scale = createScale({ from: 0, to: 101_000 }, spans([500, 100_500]))
  expect(scale.toX(0)).toBe(0)
  expect(scale.toX(101_000)).toBeCloseTo(1)
  expect(scale.toX(100_500) - scale.toX(500)).toBeCloseTo(0.03)
  for (const time of [0, 250, 500, 60_000, 100_500, 100_900]) expect(scale.toTime(scale.toX(time))).toBeCloseTo(time)
  expect(axisMarks(scale, wholeView, 800).map(({ ms }) => ms)).not.toContain(50_000)
})

test('spans are merged and cut', () => {
  const spans = [
    { from: 5, to: 9 },
    { from: 0, to: 3 },
    { from: 2, to: 4 },
  ]
  expect(mergeSpans(spans)).toEqual([
    { from: 0, to: 4 },
    { from: 5, to: 9 },
  ])
  expect(
    withoutSpans(
      [{ from: 0, to: 10 }],
      [
        { from: 2, to: 3 },
        { from: 8, to: 20 },
      ],
    ),
  ).toEqual([
    { from: 0, to: 2 },
    { from: 3, to: 8 },
  ])
})

test('a zoom keeps its place, stays within the run, and comes back from its URL', () => {
  const scale = createScale({ from: 1000, to: 11_000 }, [])
  const view = zoomView(wholeView, 0.5, 0.25)
  expect(view).toEqual({ from: 0.125, to: 0.625 })
  expect(viewToText(view, scale)).toBe('1250-6250')
  expect(textToView('1250-6250', scale)).toEqual(view)
  expect(panView(view, 9)).toEqual({ from: 0.5, to: 1 })
  expect(viewToText(wholeView, scale)).toBeUndefined()
  for (const bad of ['', 'x', '5-5', '9-1', undefined]) expect(textToView(bad, scale)).toEqual(wholeView)
})

test('what is short is seen, and what is too small to tell apart is one', () => {
  const scale = createScale({ from: 0, to: 100_000 }, [])
  const many = Array.from({ length: 5000 }, (_, i) => ({ phase: 'text' as const, from: i * 20, to: i * 20 + 19 }))
  expect(placeSegments(many, scale, wholeView, 800).length).toBeLessThan(10)
  const [wait, text] = placeSegments(
    [
      { phase: 'wait', from: 0, to: 50_000 },
      { phase: 'text', from: 50_000, to: 50_001 },
    ],
    scale,
    wholeView,
    800,
  )
  expect(wait).toMatchObject({ left: 0, width: 50 })
  expect(text).toMatchObject({ phase: 'text', left: 50, width: 0.25 })
  expect(placeSegments(many, scale, { from: 0.5, to: 0.6 }, 800).every(({ left }) => left >= -1 && left <= 101)).toBe(
    true,
  )
})

test('the activity is highest where most text came', () => {
  const tree = buildTree(outlineOf(call))
  const scale = createScale({ from: 0, to: 1100 }, [])
  const activity = measureActivity(tree, scale, (node) => segmentsOf(node, 1100, []), 11)
  expect([...activity.wait].map(Boolean).indexOf(true)).toBe(1)
  expect(activity.reasoning[4]! + activity.text[7]!).toBeGreaterThan(1.9)
})

test.each(recorded)('%s: the tree has all steps with the states of the view, at every entry', (_name, entries) => {
  const whole = outlineOf(entries)
  const fold = createRunFold()
  const calls = createAgentCalls()
  /** A call of a tool, or of an agent as one, fails with its result: its step has no error. */
  const failed = new Set<string>()
  const tools = new Set<string>()
  for (const entry of entries) {
    fold.apply(entry)
    if (entry.type === 'step-start') calls.start(entry)
    const call = agentResult(calls, entry)
    if (call?.result?.isError === true) failed.add(call.path)
    if (entry.type === 'step-start' && /^(?:tool-call|client-tool)$/u.test(entry.kind ?? entry.stepType))
      tools.add(entry.step)
    if (entry.type === 'tool-result' && entry.isError === true && tools.has(entry.step)) failed.add(entry.step)
    const tree = buildTree(clipOutline(whole, entry.seq))
    const shown = new Map(tree.all.map((node) => [node.step.path, stateOf(node)]))
    for (const { path: at, duration, error } of fold.view().steps) {
      const state = shown.get(at)!
      if (state === 'superseded') continue
      const expected =
        error !== undefined || failed.has(at) ? ['failed'] : duration === undefined ? ['running', 'waiting'] : ['done']
      expect(expected, `${at} at ${entry.seq}`).toContain(state)
    }
    expect(flattenTree(tree, () => false).length).toBe(tree.all.length)
    expect(tree.all.every((node) => labelOf(node).name !== '')).toBe(true)
    expect(timeOf(clipOutline(whole, entry.seq))).toBeLessThanOrEqual(entries.at(-1)!.timestamp)
  }
})

test.each(recorded)('%s: each entry has its row in the log, at every entry', (_name, entries) => {
  const whole = outlineOf(entries)
  for (const last of entries) {
    const rows = rowsUntil(logRows(whole), last.seq)
    expect(logRows(clipOutline(whole, last.seq)).map(({ seq, type }) => [seq, type])).toEqual(
      rows.map(({ seq, type }) => [seq, type]),
    )
    for (const entry of entries) {
      if (entry.seq > last.seq) break
      const row = rows.find(
        ({ seq, to, type, step: at }) =>
          seq <= entry.seq && to >= entry.seq && type === entry.type && at === entry.step,
      )
      expect(row, `${entry.type} ${entry.seq} at ${last.seq}`).toBeDefined()
      if (!isDelta(entry) && row!.seq === row!.to) expect(rows[rowAt(rows, entry.seq)]).toBe(row)
    }
    const starts = rows.map(({ seq }) => seq)
    expect(new Set(starts).size).toBe(starts.length)
    expect(rows.at(-1)!.seq).toBeLessThanOrEqual(last.seq)
  }
})
