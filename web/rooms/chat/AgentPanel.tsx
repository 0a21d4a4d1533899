/** The agent of a chat: its model, temperature, prompt and tools, as they are and as this chat wants them, and what else it is made of. */
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import type { AgentSettings } from '../../../src/part/agent-settings.ts'
import { api } from '../../data/client.ts'
import type { AgentFacts } from '../../data/hooks.ts'
import { followAgents } from '../../data/live.ts'
import { useResource } from '../../data/resource.ts'
import { useServer } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { answeringStep, changedText, changedWords } from './override.ts'
import { SaveChanges } from './SaveChanges.tsx'
import { StepFacts } from './StepFacts.tsx'
import { StepFields } from './StepFields.tsx'
import type { Changes } from './use-changes.ts'
import { useFaults } from './use-faults.ts'
import css from './Agent.module.css'

interface PanelProps {
  agent: AgentFacts
  changed: Changes
  /** YAML with which the conversation goes on. */
  kept: string | undefined
}

export default function AgentPanel({ agent, changed, kept }: PanelProps) {
  const { id, name = id, description } = agent
  const base = baseOf(changed, kept)
  const {
    value: settings,
    error,
    reload,
  } = useResource(`settings ${id} ${base ?? ''}`, (signal) => settingsOf(id, base, signal))
  useEffect(() => followAgents(reload), [reload])
  return (
    <div className={css.panel} data-testid="agent-panel">
      <p className={css.name}>
        <b>{name}</b>
        {description !== undefined && ` · ${description}`}
      </p>
      {settings === undefined ? (
        error === undefined ? (
          <Skeleton rows={6} />
        ) : (
          <ErrorNote error={error} onRetry={reload} isFlush />
        )
      ) : (
        <SettingsOf agent={agent} settings={settings} changed={changed} base={base} onSaved={reload} />
      )}
      <Parts agent={agent} />
    </div>
  )
}

/** The text whose settings are shown and changed; undefined for that of the file. */
function baseOf({ changes, yaml, mayChange }: Changes, kept: string | undefined): string | undefined {
  if (!mayChange || yaml === null) return undefined
  return yaml ?? (changes.length > 0 ? undefined : kept)
}

async function settingsOf(id: string, text: string | undefined, signal: AbortSignal): Promise<AgentSettings> {
  const changed = text === undefined ? undefined : await changedText(id, [], { text, signal })
  return changed?.settings ?? api<AgentSettings>(`/api/agents/${encodeURIComponent(id)}/settings`, { signal })
}

interface Props {
  /** The settings are those of this text, and not of the file. */
  base: string | undefined
  agent: AgentFacts
  settings: AgentSettings
  changed: Changes
  onSaved(): void
}

function SettingsOf({ agent: { id }, settings, changed, base, onSaved }: Props) {
  const { steps, file } = settings
  const { changes, yaml, round, mayChange, set, adopt, reset } = changed
  const edit = useServer().facts?.edit
  const [chosen, setChosen] = useState<string>()
  const [isSaving, setSaving] = useState(false)
  const faults = useFaults(id, changes, base)
  const step = steps.find(({ path }) => path === chosen) ?? answeringStep(settings)
  const words = changedWords(changes, yaml)
  if (step === undefined)
    return <p className={css.soft}>No step of this agent calls a model, so there is nothing to try.</p>
  const own = changes.find((each) => each.step === step.path)
  const elsewhere = faults.filter((fault) => fault.setting === undefined || fault.step !== step.path)
  return (
    <>
      {words !== '' && (
        <div className={css.own}>
          <p>Changed for this chat only: {words}.</p>
          <div className={css.actions}>
            <Button onClick={reset}>Reset</Button>
            {mayChange && file !== undefined && base === undefined && (
              <Button look="primary" disabled={faults.length > 0} onClick={() => setSaving(true)}>
                Save to the agent’s file
              </Button>
            )}
          </div>
        </div>
      )}
      {elsewhere.length > 0 && (
        <ul className={css.faults} role="alert">
          {elsewhere.map(({ message }) => (
            <li key={message}>{message}</li>
          ))}
        </ul>
      )}
      {steps.length > 1 && (
        <label className={css.field}>
          <span>Step</span>
          <select value={step.path} onChange={(event) => setChosen(event.target.value)}>
            {steps.map(({ path, answers }) => (
              <option key={path} value={path}>
                {path.replace(/^main\//u, '')}
                {answers === true && ' · the answer'}
              </option>
            ))}
          </select>
        </label>
      )}
      {mayChange ? (
        <StepFields
          // With other words in the file they begin anew, too.
          key={JSON.stringify([round, step.path, step.model, step.temperature, step.system])}
          step={step}
          own={own}
          settings={settings}
          faults={faults.filter((fault) => fault.step === step.path)}
          onChange={(next) => {
            // From now on the changes are of what stands here.
            if (base !== undefined) adopt(base)
            set(step, next)
          }}
        />
      ) : (
        <>
          <StepFacts step={step} />
          {edit === 'token' && (
            <p className={css.soft}>To try others, open the address for editing that millrace serve prints.</p>
          )}
        </>
      )}
      {isSaving && (
        <SaveChanges
          agentId={id}
          changes={changes}
          onClose={() => setSaving(false)}
          onSaved={() => {
            reset()
            onSaved()
          }}
        />
      )}
    </>
  )
}

function Parts({ agent: { id, steps, skills, history } }: { agent: AgentFacts }) {
  return (
    <>
      <h3>Steps of its file</h3>
      <ol className={css.parts}>
        {steps.map((step) => (
          <li key={step.id}>
            <code>{step.id}</code> {step.type}
            {step.model !== undefined && <span> · {step.model}</span>}
            {step.stream === true && <span> · the answer</span>}
          </li>
        ))}
      </ol>
      {skills !== undefined && (
        <>
          <h3>Skills</h3>
          <ul className={css.parts}>
            {skills.map(({ name, description }) => (
              <li key={name}>
                <code>{name}</code> {description}
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>Conversation</h3>
      <p>{history === 'client' ? 'The client keeps it and sends all of it.' : 'The server keeps it.'}</p>
      <p>
        <Link href={`/agents/${encodeURIComponent(id)}`}>The agent’s page</Link>
      </p>
    </>
  )
}
