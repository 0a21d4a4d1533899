/** The settings of a step as fields: what stands in them counts for this chat. */
import { useId, type ReactNode } from 'react'
import type { AgentSettings, Setting, StepChange, StepSettings } from '../../../src/part/agent-settings.ts'
import { ModelField } from './ModelField.tsx'
import type { Settings } from './override.ts'
import type { FoundFault } from './use-faults.ts'
import { ToolChoices } from './ToolChoices.tsx'
import css from './Agent.module.css'

interface Props {
  step: StepSettings
  /** What is another one in this chat. */
  own: StepChange | undefined
  settings: AgentSettings
  faults: readonly FoundFault[]
  onChange(next: Settings): void
}

export function StepFields({ step, own, settings, faults, onChange }: Props) {
  const id = useId()
  const { model, fallbacks, temperature, system } = step
  const field = (setting: Setting, label: string, of: (props: FieldProps) => ReactNode, about?: string) => {
    const messages = faults.filter((fault) => fault.setting === setting).map(({ message }) => message)
    const told = [about, ...messages].some(Boolean) ? `${id}-${setting}-told` : undefined
    return (
      <div className={css.field}>
        <label htmlFor={`${id}-${setting}`}>
          {label}
          {own?.[setting] !== undefined && <span className={css.changed}>changed</span>}
        </label>
        {of({ id: `${id}-${setting}`, 'aria-invalid': messages.length > 0, 'aria-describedby': told })}
        {told !== undefined && (
          <div id={told}>
            {about !== undefined && <p className={css.soft}>{about}</p>}
            {messages.map((message) => (
              <p key={message} className={css.fault} role="alert">
                {message}
              </p>
            ))}
          </div>
        )}
      </div>
    )
  }
  const isFirst = own?.model === undefined && fallbacks !== undefined
  return (
    <div className={css.fields}>
      {field(
        'model',
        'Model',
        (props) => (
          <ModelField
            {...props}
            models={settings.models}
            defaultValue={shown(own?.model, model)}
            onModel={(next) => onChange({ model: next })}
          />
        ),
        isFirst ? `If it refuses: ${fallbacks.join(', ')}` : undefined,
      )}
      {field('temperature', 'Temperature', (props) => (
        <input
          {...props}
          type="number"
          min={0}
          step={0.1}
          inputMode="decimal"
          placeholder="the default of the model"
          defaultValue={shown(own?.temperature, temperature)}
          onChange={({ target }) => onChange({ temperature: target.value === '' ? null : Number(target.value) })}
        />
      ))}
      {field('system', 'System prompt', (props) => (
        <textarea
          {...props}
          rows={4}
          placeholder="none"
          defaultValue={shown(own?.system, system)}
          onChange={({ target }) => onChange({ system: target.value === '' ? null : target.value })}
        />
      ))}
      <ToolChoices
        step={step}
        changes={own?.tools}
        others={settings.tools}
        faults={faults.filter(({ setting }) => setting === 'tools').map(({ message }) => message)}
        onChange={(tools) => onChange({ tools })}
      />
    </div>
  )
}

interface FieldProps {
  id: string
  'aria-invalid': boolean
  'aria-describedby': string | undefined
}

function shown(own: string | number | null | undefined, file: string | number | undefined): string | number {
  return own === undefined ? (file ?? '') : (own ?? '')
}
