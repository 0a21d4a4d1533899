/** One step: its name in the tree, and its time as a bar. */
import { memo } from 'react'
import type { Usage } from '../../../src/part/usage.ts'
import { cost, count, duration, tokens } from '../../kit/format.ts'
import { Icon, type IconName } from '../../kit/Icon.tsx'
import { placeSegments, segmentsOf, ticksOf, type Phase } from './layout/bars.ts'
import type { Scale, View } from './layout/scale.ts'
import { lengthOf, withoutSpans, type Span } from './layout/spans.ts'
import { asks, labelOf, stateOf, type StepNode } from '../../../src/fold/step-tree.ts'
import { StepName } from '../../../src/react/run-outline.tsx'
import { nameOf } from './selection.ts'
import css from './StepRow.module.css'

interface Props {
  node: StepNode
  index: number
  top: number
  height: number
  isSelected: boolean
  isFolded: boolean
  scale: Scale
  view: View
  now: number
  /** Of a step that goes on: its blocks grow in place. */
  version: number
  /** When the run was suspended, or not forked yet. */
  pauses: readonly Span[]
  /** Of its result, if the model was told it shortened. */
  handle: string | undefined
  /** The width of the lane. */
  px: number
  onSelect: (name: string) => void
  onFold: (node: StepNode, on: boolean) => void
}

export const StepRow = memo(function StepRow(props: Props) {
  const { node, index, top, height, isSelected, isFolded, handle, onSelect, onFold, now, pauses } = props
  const { step, depth, children } = node
  const { name } = labelOf(node)
  const state = stateOf(node)
  const hasChildren = children.length > 0
  const span = { from: step.at, to: Math.max(step.at, step.end ?? now) }
  const { usage } = step
  const isAsking = state === 'waiting' && asks(step)
  return (
    // Keys are those of the tree, which holds the focus.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
    <div
      id={`step-${step.from}`}
      role="row"
      aria-level={depth + 1}
      aria-rowindex={index}
      aria-selected={isSelected}
      aria-expanded={hasChildren ? !isFolded : undefined}
      className={css.row}
      data-testid="step-row"
      data-path={step.path}
      data-attempt={step.attempt}
      data-state={state}
      style={{ height, transform: `translateY(${top}px)` }}
      onClick={() => onSelect(nameOf(node))}
    >
      <div role="gridcell" className={css.name} style={{ paddingLeft: 8 + Math.min(depth, 8) * 14 }}>
        <button
          type="button"
          tabIndex={-1}
          className={css.fold}
          data-folded={isFolded}
          aria-label={isFolded ? `Unfold ${name}` : `Fold ${name}`}
          disabled={!hasChildren}
          onClick={(event) => {
            event.stopPropagation()
            onFold(node, !isFolded)
          }}
        >
          {hasChildren && <Icon name="down" size={12} />}
        </button>
        <span className={css.kind} data-kind={step.kind}>
          <Icon name={iconOf(node)} size={14} />
        </span>
        <StepName node={node} classes={nameClasses} />
        {handle !== undefined && (
          <span className={css.handle} title={`The model got a handle of the result: ${handle}`}>
            <Icon name="link" size={12} />
            <span className="visually-hidden">The model got a handle</span>
          </span>
        )}
      </div>
      <div role="gridcell" className={css.lane}>
        <Bar {...props} />
        {isAsking && <Waiting {...props} ms={span.to - span.from} />}
      </div>
      <div
        role="gridcell"
        className={`${css.time} ${css.side} num`}
        data-column="tokens"
        title={usage && sidesOf(usage)}
      >
        {usage?.totalTokens !== undefined && tokens(usage)}
      </div>
      <div role="gridcell" className={`${css.time} ${css.side} num`} data-column="cost">
        {step.cost !== undefined && usage !== undefined && cost(step.cost)}
      </div>
      <div role="gridcell" className={`${css.time} num`} data-column="time">
        {duration(asks(step) ? span.to - span.from : lengthOf(withoutSpans([span], pauses)))}
      </div>
    </div>
  )
})

function sidesOf({ inputTokens, outputTokens, source }: Usage): string {
  const sides = `${count(inputTokens ?? 0)} in, ${count(outputTokens ?? 0)} out`
  return source === 'estimated' ? `${sides}, estimated` : sides
}

/** Left of its bar, if there is room. */
function Waiting({ node, scale, view, ms }: Props & { ms: number }) {
  const x = ((scale.toX(node.step.at) - view.from) / (view.to - view.from)) * 100
  return (
    <span className={css.waiting} style={{ right: x > 50 ? `${Math.max(0, 100 - x)}%` : '4px' }}>
      waiting {duration(ms)}
    </span>
  )
}

function iconOf({ step }: StepNode): IconName {
  if (step.agent !== undefined) return 'agents'
  switch (step.kind) {
    case 'model-call':
      return 'model'
    case 'tool-call':
      return 'tool'
    case 'client-tool':
    case 'approval':
      return 'person'
    case 'parallel':
    case 'router':
      return 'fork'
    case 'tool-loop':
      return 'loop'
    default:
      return 'box'
  }
}

const nameClasses = { name: css.label!, detail: css.detail!, state: css.state!, hidden: 'visually-hidden' }

const phases: Record<Phase, string> = {
  wait: 'waited for the model',
  first: 'until the first token',
  reasoning: 'reasoning',
  text: 'text',
  'tool-input': 'arguments of a tool',
  gap: 'nothing streamed',
  tool: 'tool ran',
  sent: 'waited until the model was told',
  ask: 'waited for an answer',
  idle: 'waiting',
  group: 'took',
  work: 'ran',
}

function Bar({ node, scale, view, now, pauses, px }: Props) {
  const size = view.to - view.from
  return (
    <>
      {placeSegments(segmentsOf(node, now, pauses), scale, view, px).map(({ phase, left, width, from, to }) => (
        <i
          key={`${phase}${from}`}
          className={css.segment}
          data-phase={phase}
          title={`${phases[phase]} ${duration(to - from)}`}
          style={{ left: `${left}%`, width: `${width}%` }}
        />
      ))}
      {ticksOf(node.marks)
        .slice(0, 40)
        .map(({ kind, seq, at, note }) => {
          const x = ((scale.toX(at) - view.from) / size) * 100
          return x < 0 || x > 100 ? null : (
            <b
              key={seq}
              className={css.tick}
              data-kind={kind}
              title={`${kind}${note === undefined ? '' : `: ${note}`}`}
              style={{ left: `${x}%` }}
            />
          )
        })}
    </>
  )
}
