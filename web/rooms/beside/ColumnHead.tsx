/** What answers in a column, and what can be done with it. */
import { useLocation } from 'wouter'
import type { AgentFacts } from '../../data/hooks.ts'
import { Button } from '../../kit/Button.tsx'
import type { ColumnSpec } from './columns.ts'
import css from './beside.module.css'

interface Props {
  /** From 1. */
  n: number
  spec: ColumnSpec
  agents: readonly AgentFacts[]
  isActive: boolean
  onSpec(change: Partial<ColumnSpec>): void
  onStop(): void
  /** Absent: it is one of the last two. */
  onRemove: (() => void) | undefined
}

export function ColumnHead({ n, spec, agents, isActive, onSpec, onStop, onRemove }: Props) {
  const [, navigate] = useLocation()
  const { agent, thread } = spec
  const isKnown = agents.some(({ id }) => id === agent)
  return (
    <header className={css.head}>
      <select
        className={css.agent}
        aria-label={`Agent ${n}`}
        value={agent}
        // Another agent has another conversation.
        onChange={(event) => onSpec({ agent: event.target.value, thread: undefined, run: undefined })}
      >
        {!isKnown && <option value={agent}>{agent}</option>}
        {agents.map(({ id, name = id }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <span className={css.space} />
      {isActive && <Button look="quiet" icon="stop" aria-label={`Stop ${n}`} onClick={onStop} />}
      {thread !== undefined && isKnown && (
        <Button
          look="quiet"
          icon="chat"
          aria-label={`Open ${n} in chat`}
          onClick={() => navigate(`/chat/${encodeURIComponent(agent)}?thread=${encodeURIComponent(thread)}`)}
        />
      )}
      {onRemove && <Button look="quiet" icon="close" aria-label={`Remove ${n}`} onClick={onRemove} />}
    </header>
  )
}
