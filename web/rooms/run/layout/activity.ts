/** How much happened when: what the strip above the outline draws. */
import type { OutlineBlock } from '../../../../src/fold/outline-item.ts'
import type { Scale } from './scale.ts'
import type { Segment } from './bars.ts'
import type { StepTree } from '../../../../src/fold/step-tree.ts'

export interface Activity {
  /** For each slice, from 0 to 1: how much text came. */
  text: Float64Array
  reasoning: Float64Array
  /** For each slice: whether a tool ran, or a model was waited for. */
  tool: Float64Array
  wait: Float64Array
}

/** `segmentsFor`: the phases of a step. */
export function measureActivity(
  tree: StepTree,
  scale: Scale,
  segmentsFor: (node: StepTree['all'][number]) => readonly Segment[],
  slices: number,
): Activity {
  const empty = () => new Float64Array(slices)
  const activity: Activity = { text: empty(), reasoning: empty(), tool: empty(), wait: empty() }
  const sliceAt = (time: number) => Math.min(slices - 1, Math.max(0, Math.floor(scale.toX(time) * slices)))

  function addBlock(block: OutlineBlock): void {
    const { first, end = scale.to, chars, rate, per = 0 } = block
    if (first === undefined) return
    const into = block.kind === 'reasoning' ? activity.reasoning : activity.text
    if (rate !== undefined) {
      for (const [i, n] of rate.entries()) into[sliceAt(first + (i + 0.5) * per)]! += n
      return
    }
    const [a, b] = [sliceAt(first), sliceAt(end)]
    for (let i = a; i <= b; i++) into[i]! += chars / (b - a + 1)
  }

  for (const node of tree.all) {
    for (const block of node.blocks) addBlock(block)
    for (const { phase, from, to } of segmentsFor(node)) {
      const into =
        phase === 'wait' || phase === 'first'
          ? activity.wait
          : phase === 'tool' || phase === 'work'
            ? activity.tool
            : undefined
      if (into === undefined) continue
      const b = sliceAt(to)
      for (let i = sliceAt(from); i <= b; i++) into[i] = 1
    }
  }
  let most = 0
  for (let i = 0; i < slices; i++) most = Math.max(most, activity.text[i]! + activity.reasoning[i]!)
  if (most > 0) {
    // A square root: what is slow is seen beside what is fast.
    for (let i = 0; i < slices; i++) {
      const sum = activity.text[i]! + activity.reasoning[i]!
      const scaled = sum === 0 ? 0 : Math.sqrt(sum / most) / sum
      activity.text[i]! *= scaled
      activity.reasoning[i]! *= scaled
    }
  }
  return activity
}
