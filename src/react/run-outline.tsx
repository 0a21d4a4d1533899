/** The steps of a run, each with its state. */
import type { ReactNode } from 'react'
import type { MillraceClient } from '../client/client.ts'
import { labelOf, progressOf, stateOf, type StepNode, type StepState } from '../fold/step-tree.ts'
import { useLiveRun } from './use-live-run.ts'

/** Which run a component shows. */
export interface RunProps {
  runId: string
  /** Default: that of `MillraceProvider`, else the server that the page comes from. */
  client?: MillraceClient
}

/** The steps of a run as a list, live. Classes: `millrace-outline`, `millrace-step` with `data-state`, `data-kind` and `data-depth`. */
export function RunOutline({ runId, client }: RunProps): ReactNode {
  const { steps, lastAt } = useLiveRun(runId, client)
  return <StepList steps={steps} now={lastAt} />
}

/** The same for steps that you have. `now`: the end of open steps, epoch ms. */
export function StepList({ steps, now }: { steps: readonly StepNode[]; now: number }): ReactNode {
  return (
    <ol className="millrace-outline" aria-label="Steps">
      {steps.map((node) => (
        <li
          key={node.step.from}
          className="millrace-step"
          data-state={stateOf(node)}
          data-kind={node.step.kind}
          data-depth={node.depth}
          style={{ paddingInlineStart: `${Math.min(node.depth, 8)}em` }}
        >
          <StepName node={node} classes={classes} />{' '}
          <span className="millrace-step-time">{duration((node.step.end ?? now) - node.step.at)}</span>
        </li>
      ))}
    </ol>
  )
}

/** Of the pieces of a step's name. */
export interface StepClasses {
  name: string
  detail: string
  state: string
  /** Of words for screen readers. */
  hidden: string
}

const classes: StepClasses = {
  name: 'millrace-step-name',
  detail: 'millrace-step-detail',
  state: 'millrace-step-state',
  hidden: 'millrace-step-word',
}

const states: Record<StepState, [glyph: string, word: string]> = {
  running: ['◐', 'running'],
  waiting: ['‖', 'waiting'],
  done: ['', 'completed'],
  failed: ['✕', 'failed'],
  superseded: ['↯', 'discarded by a crash'],
}

/** The name of a step, its type and its state. The page of Millrace draws it with classes of its own. */
export function StepName({ node, classes: of }: { node: StepNode; classes: Partial<StepClasses> }): ReactNode {
  const { name, detail } = labelOf(node)
  const { attempt } = node.step
  const state = stateOf(node)
  const [glyph, word] = states[state]
  return (
    <>
      <span className={of.name}>{name}</span>{' '}
      <span className={of.detail} title={progressOf(node)}>
        {[detail, attempt > 1 && `attempt ${attempt}`].filter(Boolean).join(' · ')}
      </span>{' '}
      <span className={of.state} data-state={state} title={word}>
        <span aria-hidden="true">{glyph}</span>
        <span className={of.hidden}>{word}</span>
      </span>
    </>
  )
}

/** 340 ms → `340 ms`, 1,234 → `1.2 s`, 75,000 → `1m 15s`, 2 h → `2h 00m`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${pad(seconds % 60)}s`
  return `${Math.floor(seconds / 3600)}h ${pad(Math.floor((seconds % 3600) / 60))}m`
}

function pad(n: number): string {
  return String(n).padStart(2, '0')
}
