import { expect, test } from 'vitest'
import { forkGap } from '../../../../src/fold/fork-gap.ts'
import { clipOutline } from '../../../../src/fold/merge-outline.ts'
import { createOutline } from '../../../../src/fold/outline.ts'
import { buildTree } from '../../../../src/fold/step-tree.ts'
import { buildRun, startPart, type Item } from '../../../../test/build-run.ts'
import { isChosen, rowName, treeRows } from './tree-rows.ts'

const loop = 'main/a'
const begin = (step: string, kind: string, attempt = 1): Item =>
  ({ step, part: { type: 'step-start', stepType: kind, kind, attempt } }) as Item
const end = (step: string): Item => ({ step, part: { type: 'step-finish', duration: 1 } })
const message = (step: string, id: string, more: object = {}): Item =>
  ({ step, part: { type: 'message', id, content: id, protocol: 'api', by: { id: 'ann' }, sentAt: 5, ...more } }) as Item

/** A message before a call that a crash ends, one behind it, and one that begins the next run. */
const entries = buildRun([
  { step: '', part: startPart },
  begin(loop, 'tool-loop'),
  begin(`${loop}/1`, 'model-call'),
  end(`${loop}/1`),
  message(loop, 'first'),
  begin(`${loop}/2`, 'model-call'),
  { step: loop, part: { type: 'step-reset', attempt: 2 } },
  begin(loop, 'tool-loop', 2),
  begin(`${loop}/1`, 'model-call', 2),
  end(`${loop}/1`),
  message(loop, 'second', { outcome: 'withdrawn' }),
  end(loop),
  message('', 'third', { outcome: 'next', runId: 'run_2' }),
  { step: '', part: { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } } },
])

const outline = createOutline()
for (const entry of entries) outline.apply(entry)
const items = outline.items()
const seqOf = (id: string) => entries.find((entry) => entry.type === 'message' && entry.id === id)!.seq
const names = (rows: ReturnType<typeof treeRows>) =>
  rows.map(({ mark, node, depth }) => `${depth} ${mark?.note ?? node!.step.path}`)

test('messages are rows between the steps, where they were told; what is folded hides them', () => {
  const tree = buildTree(items)
  const all = `0 main/a, 1 main/a/1, 1 first, 1 main/a/2, 0 main/a, 1 main/a/1, 1 second, 0 third`
  expect(names(treeRows(tree, () => false)).join(', ')).toBe(all)
  expect(names(treeRows(tree, () => true))).toEqual([`0 ${loop}`, `0 ${loop}`, '0 third'])
  const then = buildTree(clipOutline(items, seqOf('first') - 1))
  expect(names(treeRows(then, () => false))).toEqual([`0 ${loop}`, `1 ${loop}/1`])
})

test('a message has who sent it, when, and what became of it; a crash does not take it back', () => {
  const marks = items.flatMap((item) => (item.k === 'mark' && item.type === 'message' ? [item] : []))
  expect(marks.map(({ sent }) => sent)).toEqual([
    { at: 5, by: { id: 'ann' } },
    { at: 5, by: { id: 'ann' }, outcome: 'withdrawn' },
    { at: 5, by: { id: 'ann' }, outcome: 'next' },
  ])
  expect(marks.every(({ superseded }) => superseded === undefined)).toBe(true)
})

test('one row is chosen: that of the message, or of the step that has the entry', () => {
  const tree = buildTree(items)
  const rows = treeRows(tree, () => false)
  const chosen = (seq: number) =>
    rows.filter((row) => isChosen(row, { kind: 'entry', seq, node: tree.of(entries[seq - 1]!.step, seq) })).map(rowName)
  expect(chosen(seqOf('first'))).toEqual([String(seqOf('first'))])
  expect(chosen(seqOf('third'))).toEqual([String(seqOf('third'))])
  expect(chosen(seqOf('second') + 1)).toEqual([loop])
})

test('of a fork in the middle of a text the gap begins behind its last word', () => {
  const fork = { runId: 'source', seq: 5, at: 9000 }
  const block = (type: string, more: object = {}): Item => ({ step: loop, part: { type, id: 't', ...more } }) as Item
  const forked = buildRun([
    { step: '', part: { ...startPart, forkedFrom: fork } as Item['part'] },
    begin(loop, 'model-call'),
    block('text-start'),
    block('text-delta', { delta: 'One ' }),
    block('text-delta', { delta: 'two' }),
    { step: loop, part: { type: 'step-reset', attempt: 2 } },
    begin(loop, 'model-call', 2),
    end(loop),
    { step: '', part: { type: 'run-end', outcome: 'completed', usage: { source: 'reported' } } },
  ]).map((entry, i) => ({ ...entry, timestamp: [0, 10, 20, 30, 4000, 9000, 9000, 9100, 9100][i]! }))
  const made = createOutline()
  for (const entry of forked) made.apply(entry)
  const { from, to } = forkGap(buildTree(made.items()))!
  // The slices of its rate are as exact as it is drawn.
  expect(from).toBeGreaterThan(3500)
  expect([from <= 4000, to]).toEqual([true, 9000])
})
