/** What answers in a column, and what can be done with it. */
import { useLocation } from 'wouter'
import type { AgentFacts } from '../../../data/hooks.ts'
import { Button } from '../../../kit/Button.tsx'
import { keepChanges } from '../override.ts'
import { ColumnSettings } from './ColumnSettings.tsx'
import { noSettings, type ColumnSpec } from './columns.ts'
import { ModelField } from './ModelField.tsx'
import type { ColumnAgent } from './use-column-agent.ts'
import css from './beside.module.css'

interface Props {
  /** From 1. */
  n: number
  spec: ColumnSpec
  agents: readonly AgentFacts[]
  chosen: ColumnAgent
  /** Why no model can be chosen. */
  reason: string | undefined
  isActive: boolean
  onSpec(change: Partial<ColumnSpec>): boolean
  onStop(): void
  onRemove: (() => void) | undefined
}

export function ColumnHead(props: Props) {
  const { n, spec, agents, chosen, reason, isActive, onSpec, onStop, onRemove } = props
  const [, navigate] = useLocation()
  const { agent, thread } = spec
  const isKnown = agents.some(({ id }) => id === agent)
  return (
    <header className={css.head}>
      <select
        className={css.agent}
        aria-label={`Agent of column ${n}`}
        value={agent}
        // Another agent has its own model and another conversation.
        onChange={(event) => onSpec({ ...noSettings, agent: event.target.value, thread: undefined, run: undefined })}
      >
        {!isKnown && <option value={agent}>{agent}</option>}
        {agents.map(({ id, name = id }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <div className={css.changes}>
        <ModelField
          n={n}
          model={spec.model}
          own={chosen.step?.model}
          models={chosen.settings?.models ?? []}
          reason={reason}
          onModel={(model) => onSpec({ model })}
        />
        <ColumnSettings n={n} spec={spec} agent={chosen} reason={reason} onSpec={onSpec} />
      </div>
      <div className={css.does}>
        {isActive && <Button look="quiet" icon="stop" aria-label={`Stop column ${n}`} onClick={onStop} />}
        {thread !== undefined && isKnown && (
          <Button
            look="quiet"
            icon="chat"
            aria-label={`Open in chat: column ${n}`}
            onClick={() => {
              // There it goes on as here.
              keepChanges(`${agent}:${thread}`, chosen.changes)
              navigate(`/chat/${encodeURIComponent(agent)}?thread=${encodeURIComponent(thread)}`)
            }}
          >
            <span className={css.words}>Open in chat</span>
          </Button>
        )}
        {onRemove && <Button look="quiet" icon="close" aria-label={`Remove column ${n}`} onClick={onRemove} />}
      </div>
    </header>
  )
}
