/** What the page makes of a run. */
import type { Entry } from '../../src/part/entry.ts'
import type { OutlineItem } from '../../src/fold/outline-item.ts'
import { factsOf, marksOf } from '../../web/rooms/chat/beside/answer-facts.ts'
import { createTurnFold } from '../../web/rooms/chat/turn-fold.ts'
import { differences, nameOf, pairSteps, stepsOf } from '../../web/rooms/compare/steps.ts'
import { measureActivity } from '../../web/rooms/run/layout/activity.ts'
import { axisMarks } from '../../web/rooms/run/layout/axis.ts'
import { placeSegments, segmentsOf, ticksOf } from '../../web/rooms/run/layout/bars.ts'
import { readFacts, timeOf } from '../../web/rooms/run/layout/facts.ts'
import { logRows, rowsUntil, summaryOf } from '../../src/fold/log-rows.ts'
import { createScale, textToView, viewToText, wholeView } from '../../web/rooms/run/layout/scale.ts'
import { busySpans, idleGaps, suspendedSpans } from '../../web/rooms/run/layout/spans.ts'
import { buildTree, flattenTree, labelOf, stateOf } from '../../src/fold/step-tree.ts'
import { createFinder } from '../../web/rooms/run/log/find.ts'
import { saidIn } from '../../web/rooms/threads/turn.ts'

export function drawRun(entries: readonly Entry[], items: readonly OutlineItem[]): void {
  const tree = buildTree(items)
  const now = timeOf(items)
  const suspended = suspendedSpans(tree.marks, now)
  const from = tree.marks[0]?.at ?? tree.all[0]?.step.at ?? 0
  const scale = createScale({ from, to: Math.max(from + 1, now) }, idleGaps(busySpans(tree, now, suspended)))
  const segments = (node: (typeof tree.all)[number]) => segmentsOf(node, now, suspended)
  for (const node of flattenTree(tree, () => false)) {
    placeSegments(segments(node), scale, wholeView, 800)
    ticksOf(node.marks)
    JSON.stringify([labelOf(node), stateOf(node)])
  }
  measureActivity(tree, scale, segments, 200)
  axisMarks(scale, wholeView, 800)
  textToView(viewToText(wholeView, scale), scale)
  JSON.stringify(readFacts(tree, now))
  rowsUntil(logRows(items), Math.ceil(entries.length / 2))
  const find = createFinder('a')
  const turn = createTurnFold()
  for (const entry of entries) {
    summaryOf(entry)
    find(entry)
    turn.apply(entry)
  }
  const said = turn.read()
  JSON.stringify(said)
  if (said !== undefined)
    marksOf([factsOf(said), { ...factsOf(said), time: 0 }].map((answer) => ({ answers: [answer], isBusy: false })))
  const [start] = entries
  if (start?.type === 'run-start') saidIn(start.input, [], true)
  const steps = stepsOf(items)
  for (const [a, b] of pairSteps(steps, steps.slice(1))) {
    if (a !== undefined) nameOf(a)
    if (a !== undefined && b !== undefined) differences(a, b)
  }
}
