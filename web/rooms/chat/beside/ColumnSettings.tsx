/** What one column changes of its agent: model, temperature, prompt, tools. */
import { useState } from 'react'
import type { AgentSettings, StepSettings } from '../../../../src/part/agent-settings.ts'
import { Button } from '../../../kit/Button.tsx'
import { Dialog } from '../../../kit/Dialog.tsx'
import { withSettings, type Settings } from '../override.ts'
import { StepFields } from '../StepFields.tsx'
import { useFaults } from '../use-faults.ts'
import { noSettings, settingsIn, type ColumnSpec } from './columns.ts'
import type { ColumnAgent } from './use-column-agent.ts'
import css from './beside.module.css'

interface Props {
  /** From 1: of the column. */
  n: number
  spec: ColumnSpec
  agent: ColumnAgent
  reason: string | undefined
  /** False: it was not taken, because the address would be too long. */
  onSpec(change: Partial<ColumnSpec>): boolean
}

export function ColumnSettings({ n, spec, agent: { settings, step }, reason, onSpec }: Props) {
  const [isOpen, setOpen] = useState(false)
  const close = () => setOpen(false)
  return (
    <>
      <Button
        look="quiet"
        icon="sliders"
        aria-label={`Settings of column ${n}`}
        title={reason ?? 'Model, temperature, prompt, tools'}
        aria-pressed={Object.keys(settingsIn(spec)).length > 0}
        disabled={reason !== undefined || step === undefined}
        onClick={() => setOpen(true)}
      />
      <Dialog isOpen={isOpen} title={`Settings of column ${n}`} onClose={close} className={css.settings!}>
        {settings !== undefined && step !== undefined && (
          <Fields spec={spec} settings={settings} step={step} onSpec={onSpec} onDone={close} />
        )}
      </Dialog>
    </>
  )
}

interface FieldsProps extends Pick<Props, 'spec' | 'onSpec'> {
  settings: AgentSettings
  step: StepSettings
  onDone(): void
}

function Fields({ spec, settings, step, onSpec, onDone }: FieldsProps) {
  const [changes, setChanges] = useState(() => withSettings([], step, settingsIn(spec)))
  const [isLong, setLong] = useState(false)
  const faults = useFaults(spec.agent, changes)
  const [own] = changes
  const use = () => {
    const { step: _, ...next }: { step?: string } & Settings = own ?? {}
    if (onSpec({ ...noSettings, ...next })) onDone()
    else setLong(true)
  }
  const reset = () => {
    onSpec(noSettings)
    onDone()
  }
  return (
    <form
      className={css.fields}
      onSubmit={(event) => {
        event.preventDefault()
        use()
      }}
    >
      <StepFields
        step={step}
        own={own}
        settings={settings}
        faults={faults}
        onChange={(next) => setChanges((before) => withSettings(before, step, next))}
      />
      {faults.map(
        ({ setting, message }) =>
          setting === undefined && (
            <p key={message} role="alert">
              {message}
            </p>
          ),
      )}
      {isLong && (
        <p role="alert">
          This is too long for the address of the room. Shorten the prompt, or change the agent’s file.
        </p>
      )}
      <div className={css.buttons}>
        <Button look="quiet" disabled={own === undefined} onClick={reset}>
          As in the file
        </Button>
        <Button look="primary" type="submit" disabled={faults.length > 0}>
          Use
        </Button>
      </div>
    </form>
  )
}
