/** Makes an agent: a name and what it begins with. It opens in the editor. */
import { useId, useState } from 'react'
import { useLocation, useSearch } from 'wouter'
import type { AgentFacts } from '../../data/hooks.ts'
import { Button } from '../../kit/Button.tsx'
import { Dialog } from '../../kit/Dialog.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { saveAgent } from './agent-api.ts'
import { idFor, templates } from './templates.ts'
import css from './NewAgent.module.css'

export function NewAgent({ agents }: { agents: readonly AgentFacts[] }) {
  const [, navigate] = useLocation()
  // An address, so that other rooms lead to it.
  const isOpen = new URLSearchParams(useSearch()).has('new')
  const setOpen = (opens: boolean) => navigate(opens ? '/agents?new' : '/agents', { replace: true })
  return (
    <>
      <Button look="primary" icon="plus" onClick={() => setOpen(true)}>
        New agent
      </Button>
      <Dialog isOpen={isOpen} title="New agent" onClose={() => setOpen(false)}>
        <Form agents={agents} />
      </Dialog>
    </>
  )
}

function Form({ agents }: { agents: readonly AgentFacts[] }) {
  const field = useId()
  const [, navigate] = useLocation()
  const [name, setName] = useState('')
  const [kind, setKind] = useState(templates[0]!.id)
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const id = idFor(name)
  const isTaken = agents.some((agent) => agent.id === id)
  const create = async () => {
    if (id === '' || isTaken || state.isBusy) return
    setState({ isBusy: true })
    try {
      const text = templates.find((template) => template.id === kind)!.text(name.trim(), usualModel(agents))
      await saveAgent(id, text, undefined)
      navigate(`/agents/${encodeURIComponent(id)}`)
    } catch (error) {
      setState({ isBusy: false, error })
    }
  }
  return (
    <form
      className={css.form}
      onSubmit={(event) => {
        event.preventDefault()
        void create()
      }}
    >
      <label htmlFor={field}>Name</label>
      <input
        id={field}
        value={name}
        autoComplete="off"
        maxLength={80}
        aria-describedby={`${field}-file`}
        aria-invalid={isTaken}
        onChange={(event) => setName(event.target.value)}
      />
      <p id={`${field}-file`} className={css.file} data-taken={isTaken || undefined}>
        {isTaken ? `There is an agent “${id}” already.` : id === '' ? 'Such as “Front desk”.' : `Its file: ${id}.yaml`}
      </p>
      <fieldset className={css.kinds}>
        <legend>Begin with</legend>
        {templates.map(({ id: each, title, what }) => (
          <label key={each} className={css.kind}>
            <input type="radio" name={`${field}-kind`} checked={kind === each} onChange={() => setKind(each)} />
            <span>
              <strong>{title}</strong>
              {what}
            </span>
          </label>
        ))}
      </fieldset>
      {state.error !== undefined && <ErrorNote error={state.error} />}
      <div className={css.answer}>
        <Button look="primary" type="submit" disabled={id === '' || isTaken || state.isBusy}>
          Create
        </Button>
      </div>
    </form>
  )
}

/** The model that most steps here use; the built-in one if there is none. */
function usualModel(agents: readonly AgentFacts[]): string {
  const counts = new Map<string, number>()
  for (const { steps } of agents)
    for (const { model } of steps)
      if (model !== undefined && !model.startsWith('$')) counts.set(model, (counts.get(model) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? 'demo:assistant'
}
