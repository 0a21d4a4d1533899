import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import type { Entry, RecordedPart } from '../part/entry.ts'
import { createRunFold } from '../fold/run-fold.ts'
import { noUsage } from '../part/usage.ts'
import { textWire } from './text/text.ts'
import { often } from '../../test/support/thorough.ts'

/** A tree of parallels: an answer, or branches in their declared order. */
type Tree = string[] | { [branch: string]: Tree }

const item = (step: string, part: object): Item => ({ step, part: part as RecordedPart })

/** The entries of each thread of a tree, in its own order; a parallel's end comes behind those of its branches. */
function play(tree: Tree, path: string, pick: (n: number) => number): Item[] {
  if (Array.isArray(tree)) {
    const id = path
    const call = `${path}/say/1`
    return [
      item(`${path}/say`, { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }),
      item(call, { type: 'step-start', stepType: 'model-call', attempt: 1 }),
      item(call, { type: 'text-start', id }),
      ...tree.map((delta) => item(call, { type: 'text-delta', id, delta })),
      item(call, { type: 'text-end', id }),
      item(call, { type: 'step-finish', duration: 0 }),
      item(`${path}/say`, { type: 'step-finish', duration: 0 }),
    ]
  }
  const at = `${path}/all`
  const threads = Object.entries(tree).map(([name, inner]) => [
    item(`${at}/${name}`, { type: 'step-start', stepType: 'branch', attempt: 1 }),
    ...play(inner, `${at}/${name}`, pick),
    item(`${at}/${name}`, { type: 'step-finish', duration: 0 }),
  ])
  const mixed: Item[] = []
  for (let left = threads; left.length > 0; left = left.filter((thread) => thread.length > 0)) {
    mixed.push(left[pick(left.length)]!.shift()!)
  }
  const order = Object.keys(tree)
  return [
    item(at, { type: 'step-start', stepType: 'parallel', attempt: 1, order }),
    ...mixed,
    item(at, { type: 'step-finish', duration: 0 }),
  ]
}

const leaves = (tree: Tree): string[] =>
  Array.isArray(tree) ? [tree.join('')] : Object.values(tree).flatMap((inner) => leaves(inner))
/** The next one's words begin on a line of their own. */
const words = (tree: Tree): string =>
  leaves(tree)
    .filter((text) => text !== '')
    .reduce((said, text) => said + (said === '' || said.endsWith('\n') ? '' : '\n\n') + text, '')

const leaf = fc.array(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 4 })
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.dictionary(fc.constantFrom('x', 'xy', 'a', 'b'), tie('tree'), { minKeys: 1, maxKeys: 3 }),
  ),
}))
const runs = fc.tuple(tree, fc.array(fc.nat(), { minLength: 50, maxLength: 50 })).map(([shape, picks]) => {
  let i = 0
  const items = play(shape, 'main', (n) => (picks[i++ % picks.length] ?? 0) % n)
  const end = item('', { type: 'answer-end', finishReason: 'stop', usage: noUsage })
  return { shape, entries: buildRun([{ step: '', part: startPart }, ...items, end]) }
})

const encodeAll = (entries: readonly Entry[]) => {
  const encoder = textWire.createEncoder()
  return entries.map((entry) => encoder.encode(entry))
}

describe('declared order', () => {
  test('answers at once come out in declared order, whatever the log’s order, however deep', () => {
    fc.assert(
      fc.property(runs, ({ shape, entries }) => {
        expect(encodeAll(entries).join('')).toBe(words(shape))
      }),
      { numRuns: often(300) },
    )
  })

  test('the first branch’s words go out as they come: nothing waits that need not', () => {
    fc.assert(
      fc.property(runs, ({ entries }) => {
        const frames = encodeAll(entries)
        for (const [i, entry] of entries.entries()) {
          if (entry.type === 'text-delta' && isFirst(entry.step, entries)) expect(frames[i]).toBe(entry.delta)
        }
      }),
      { numRuns: often(100) },
    )
  })

  test('a client that resumes gets exactly what it has not had, also what was held back', () => {
    fc.assert(
      fc.property(runs, ({ entries }) => {
        const frames = encodeAll(entries)
        for (let k = 0; k <= entries.length; k++) {
          const encoder = textWire.createEncoder()
          for (const entry of entries.slice(0, k)) encoder.skip(entry)
          const rest = entries.slice(k).map((entry) => encoder.encode(entry))
          expect(rest.join('')).toBe(frames.slice(k).join(''))
        }
      }),
      { numRuns: often(60) },
    )
  })

  test('a run’s text and messages stand in declared order as well', () => {
    fc.assert(
      fc.property(runs, ({ shape, entries }) => {
        const fold = createRunFold()
        for (const entry of entries) fold.apply(entry)
        expect(fold.view().text).toBe(leaves(shape).join(''))
      }),
      { numRuns: often(100) },
    )
  })

  test('what a crash made void of a waiting branch is not said; what was said cannot be taken back', () => {
    const branch = (name: string) => item(`main/all/${name}`, { type: 'step-start', stepType: 'branch', attempt: 1 })
    const speak = (name: string, id: string, delta: string) => [
      item(`main/all/${name}/say/1`, { type: 'step-start', stepType: 'model-call', attempt: Number(id.at(-1)) }),
      item(`main/all/${name}/say/1`, { type: 'text-start', id }),
      item(`main/all/${name}/say/1`, { type: 'text-delta', id, delta }),
    ]
    const before = [
      item('', startPart),
      item('main/all', { type: 'step-start', stepType: 'parallel', attempt: 1, order: ['a', 'b'] }),
      ...['a', 'b'].flatMap((name) => [
        branch(name),
        item(`main/all/${name}/say`, { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }),
      ]),
      ...speak('b', 'b1', 'void'),
      ...speak('a', 'a1', 'A'),
    ]
    const reset = (name: string) => item(`main/all/${name}/say/1`, { type: 'step-reset', attempt: 1 })
    const after = [
      ...speak('b', 'b2', 'B'),
      item('main/all/a', { type: 'step-finish', duration: 0 }),
      item('main/all/b', { type: 'step-finish', duration: 0 }),
    ]
    const encoder = textWire.createEncoder()
    const entries = buildRun([...before, reset('b'), ...after])
    expect(entries.map((entry) => encoder.encode(entry)).join('')).toBe('A\n\nB')
    expect(encoder.state).toBe('open')
    const broken = textWire.createEncoder()
    for (const entry of buildRun([...before, reset('a')])) broken.encode(entry)
    expect(broken.state).toBe('broken')
  })
})

/** Whether every parallel around a path has nothing declared before it. */
function isFirst(path: string, entries: readonly Entry[]): boolean {
  return entries.every((entry) => {
    if (entry.type !== 'step-start' || entry.order === undefined || !path.startsWith(`${entry.step}/`)) return true
    return path.startsWith(`${entry.step}/${entry.order[0]}/`)
  })
}
