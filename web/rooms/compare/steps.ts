/** The steps of two runs beside each other: by name, kind and tool. Ids and times do not count. */
import type { OutlineItem, OutlineStep } from '../../../src/fold/outline-item.ts'
import { parentPath } from '../../../src/part/path.ts'
import { buildTree } from '../../../src/fold/step-tree.ts'
import { forkGap } from '../../../src/fold/fork-gap.ts'
import { mergeOutline } from '../../../src/fold/merge-outline.ts'
import { align, type Pair } from '../../kit/diff/align.ts'

/** The steps that count: each followed by those inside of it, in the order in which they began. */
export function stepsOf(items: Iterable<OutlineItem>): OutlineStep[] {
  const merged = mergeOutline(items)
  const gap = forkGap(buildTree(merged))
  const shared = merged.find((item) => item.k === 'mark')?.fork?.seq ?? 0
  const steps = merged
    .filter((item): item is OutlineStep => item.k === 'step' && item.superseded === undefined)
    .map((step) => (gap === undefined ? step : withoutGap(step, shared, gap.to - gap.from)))
  const inside = Map.groupBy(steps, ({ path }) => parentPath(path))
  const paths = new Set(steps.map(({ path }) => path))
  const ordered: OutlineStep[] = []
  // A stack, because what calls itself may be nested deep.
  const next = steps.filter(({ path }) => !paths.has(parentPath(path))).toReversed()
  for (let step = next.pop(); step !== undefined; step = next.pop()) {
    ordered.push(step)
    for (const each of (inside.get(step.path) ?? []).toReversed()) next.push(each)
    inside.delete(step.path)
  }
  return ordered
}

/** Of a fork: as if it had gone on at once, for it did not exist meanwhile. */
function withoutGap(step: OutlineStep, shared: number, ms: number): OutlineStep {
  const { from, to, at, end } = step
  return { ...step, at: from > shared ? at - ms : at, ...(end !== undefined && { end: to > shared ? end - ms : end }) }
}

export function pairSteps(a: readonly OutlineStep[], b: readonly OutlineStep[]): Pair<OutlineStep>[] {
  return align(a, b, keyOf)
}

/** Numbers and ids in a path say which call it is, not what it does. */
function keyOf({ path, stepType, kind, toolName, agent, toolCallId }: OutlineStep): string {
  const names = path.split('/').map((part) => (/^\d+$/u.test(part) || part === toolCallId ? '#' : part))
  return [toolCallId === undefined ? names.join('/') : `${names.length}`, stepType, kind, toolName, agent].join('\n')
}

export function depthOf({ path }: OutlineStep): number {
  return Math.max(0, path.split('/').length - 2)
}

/** What a step is called in a list. */
export function nameOf({ path, kind, toolName, model, agent }: OutlineStep): string {
  if (agent !== undefined) return agent
  if (toolName !== undefined) return toolName
  if (kind === 'model-call') return model ?? 'model'
  return path.split('/').at(-1)!
}

export function lengthOf({ at, end }: OutlineStep): number | undefined {
  return end === undefined ? undefined : end - at
}

/** What the two did differently, as words. */
export function differences(a: OutlineStep, b: OutlineStep): string[] {
  const found: string[] = []
  if (a.model !== b.model) found.push('model')
  if (a.finishReason !== b.finishReason) found.push('end')
  if (a.error?.code !== b.error?.code) found.push('error')
  return found
}
