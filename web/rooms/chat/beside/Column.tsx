/** One column: what answers, and its own conversation. */
import { memo, type Ref } from 'react'
import type { Message } from '../../../../src/part/message.ts'
import type { AgentFacts } from '../../../data/hooks.ts'
import { Empty } from '../../../kit/Empty.tsx'
import type { Marks } from './answer-facts.ts'
import { ColumnChat, type ColumnHandle, type ColumnState } from './ColumnChat.tsx'
import { ColumnHead } from './ColumnHead.tsx'
import type { ColumnSpec } from './columns.ts'
import { useColumnAgent } from './use-column-agent.ts'
import css from './beside.module.css'

interface Props {
  /** Stays the same while columns come and go. */
  id: number
  /** From 1: where it stands. */
  n: number
  /** What it is called. */
  label: string
  spec: ColumnSpec
  agents: readonly AgentFacts[]
  isActive: boolean
  marks: Marks
  /** Why no model can be chosen. */
  reason: string | undefined
  /** False: the address would be too long. */
  onSpec(id: number, change: Partial<ColumnSpec>): boolean
  onState(id: number, state: ColumnState): void
  onStop(id: number): void
  /** Absent: it is one of the last two. */
  onRemove: ((id: number) => void) | undefined
  onReturned(messages: readonly Message[]): void
  onEdited(id: number, runId: string, asked: readonly Message[]): void
  handle: Ref<ColumnHandle>
}

export const Column = memo(function Column(props: Props) {
  const { id, n, label, spec, agents, isActive, marks, reason, handle } = props
  const { onSpec, onState, onStop, onRemove, onReturned, onEdited } = props
  const agent = agents.find((each) => each.id === spec.agent)
  const chosen = useColumnAgent(spec, reason)
  return (
    <section className={css.column} aria-label={label} data-testid="column">
      <ColumnHead
        n={n}
        spec={spec}
        agents={agents}
        chosen={chosen}
        reason={reason}
        isActive={isActive}
        onSpec={(change) => onSpec(id, change)}
        onStop={() => onStop(id)}
        onRemove={onRemove && (() => onRemove(id))}
      />
      {chosen.fault !== undefined && (
        <p role="alert" className={css.alert}>
          {chosen.fault}
        </p>
      )}
      {agent === undefined ? (
        <Empty title={`There is no agent ${spec.agent}.`}>Choose another one.</Empty>
      ) : (
        <ColumnChat
          key={agent.id}
          ref={handle}
          id={id}
          label={label}
          spec={spec}
          agent={agent}
          chosen={chosen}
          marks={marks}
          onSpec={onSpec}
          onState={onState}
          onReturned={onReturned}
          onEdited={onEdited}
        />
      )}
    </section>
  )
})
