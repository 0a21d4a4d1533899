/** The keys of a run. */
import { copyText } from '../../kit/copy-text.ts'
import { markForCompare } from '../../data/compare-mark.ts'
import { useKeys } from '../../shell/keys.ts'
import { speeds } from './data/use-play.ts'
import { isChosen, rowName } from './layout/tree-rows.ts'
import { panView, zoomView } from './layout/scale.ts'
import { stateOf } from '../../../src/fold/step-tree.ts'
import { nameOf } from './selection.ts'
import type { Room } from './use-room.ts'

export function useRunKeys(room: Room): void {
  const { selection, rows, view, setView } = room
  const node = 'node' in selection ? selection.node : undefined
  const here = rows.findIndex((each) => isChosen(each, selection))
  const move = (by: number) => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, here + by))]
    // The run itself stands above its first step.
    if (here + by < 0 && selection.kind !== 'none') room.select('run', true)
    else if (next !== undefined) room.select(rowName(next), true)
  }
  const fold = () => {
    if (node === undefined) return
    if (node.children.length > 0 && !room.isFolded(node)) room.fold(node, true)
    else if (node.parent !== undefined) room.select(nameOf(node.parent), true)
  }
  const unfold = () => {
    if (node === undefined || node.children.length === 0) return
    if (room.isFolded(node)) room.fold(node, false)
    else room.select(nameOf(node.children[0]!), true)
  }
  const speed = (i: number) => ({ label: `Play at ${speeds[i]}×`, run: () => room.play.setSpeed(speeds[i]!) })
  useKeys(
    {
      j: { label: 'Next step', run: () => move(1) },
      k: { label: 'Previous step', run: () => move(-1) },
      h: { label: 'Fold the step, or go to its parent', run: fold },
      l: { label: 'Unfold the step', run: unfold },
      Enter: {
        label: 'Go to the details',
        run: () => document.querySelector<HTMLElement>('[data-inspector]')?.focus(),
      },
      Esc: { label: 'Clear the selection', run: () => room.select(undefined, true) },
      ',': { label: 'Previous entry', run: () => room.step(-1, false) },
      '.': { label: 'Next entry', run: () => room.step(1, false) },
      'Shift+,': { label: 'Previous block', run: () => room.step(-1, true) },
      'Shift+.': { label: 'Next block', run: () => room.step(1, true) },
      Space: { label: 'Play, or pause', run: room.play.toggle },
      1: speed(0),
      2: speed(1),
      3: speed(2),
      w: { label: 'Zoom in', run: () => setView(zoomView(view, 0.7)) },
      s: { label: 'Zoom out', run: () => setView(zoomView(view, 1 / 0.7)) },
      a: { label: 'Move to earlier', run: () => setView(panView(view, -0.2)) },
      d: { label: 'Move to later', run: () => setView(panView(view, 0.2)) },
      e: {
        label: 'Next error',
        run() {
          const failed = rows.flatMap(({ node: each }, i) =>
            each !== undefined && stateOf(each) === 'failed' ? [{ each, i }] : [],
          )
          const next = failed.find(({ i }) => i > here) ?? failed[0]
          if (next !== undefined) room.select(nameOf(next.each), true)
        },
      },
      o: {
        label: 'The question that waits',
        run: () =>
          document
            .querySelector<HTMLElement>('[data-testid=open-request] form :is([data-first], textarea, select)')
            ?.focus(),
      },
      f: { label: 'Follow the run', run: () => room.follow(true) },
      '/': { label: 'Find in the log', run: () => document.querySelector<HTMLElement>('[data-log-find]')?.focus() },
      c: { label: 'Copy the id of the run', run: () => void copyText(room.id).catch(() => undefined) },
      y: { label: 'Copy the link to this', run: () => void copyText(location.href).catch(() => undefined) },
      x: { label: 'Mark to compare', run: () => void markForCompare(room.id) },
    },
    'Run',
  )
}
