/** All agents, and the files that could not be loaded, with their mistakes. */
import { Link } from 'wouter'
import { useAgents, type AgentFacts, type AgentFault } from '../../data/hooks.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { useServer, useSignedIn } from '../../data/server.ts'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { NewAgent } from './NewAgent.tsx'
import css from './Agents.module.css'

export function AgentList() {
  const { value, error, reload } = useAgents()
  const canEdit = useMayEdit(useServer().facts?.edit)
  if (value === undefined)
    return error === undefined ? <Skeleton rows={6} /> : <ErrorNote error={error} onRetry={reload} />
  const { agents, errors } = value
  return (
    <div className={css.list}>
      <h1 className="visually-hidden">Agents</h1>
      {canEdit && (
        <div className={css.bar}>
          <NewAgent agents={agents} />
        </div>
      )}
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      {errors.length > 0 && <LoadErrors errors={errors} />}
      {agents.length === 0 && errors.length === 0 ? (
        <NoAgents />
      ) : (
        <ul className={css.agents}>
          {agents.map((agent) => (
            <AgentRow key={agent.id} agent={agent} />
          ))}
        </ul>
      )}
    </div>
  )
}

function NoAgents() {
  if (useSignedIn()?.role === 'user') return <Empty title="No agent is open to you." />
  return (
    <Empty title="There are no agents yet.">
      An agent is one YAML file in the agents folder. Make the first one here, or with <code>npx millrace init</code>.
    </Empty>
  )
}

function AgentRow({ agent: { id, name = id, description, steps, tools } }: { agent: AgentFacts }) {
  const models = [...new Set(steps.flatMap(({ model }) => model ?? []))]
  const path = encodeURIComponent(id)
  return (
    <li className={css.agent} data-testid="agent-row">
      <Link href={`/agents/${path}`} className={css.agentName}>
        {name} {name !== id && <code>{id}</code>}
      </Link>
      <p className={css.what}>{description}</p>
      <p className={css.facts}>
        <span>
          {steps.length} {steps.length === 1 ? 'step' : 'steps'}
        </span>
        {models.map((model) => (
          <code key={model}>{model}</code>
        ))}
        {tools.length > 0 && (
          <span title={tools.join(', ')}>{tools.length === 1 ? '1 tool' : `${tools.length} tools`}</span>
        )}
      </p>
      <Link href={`/chat/${path}`} className={css.try} aria-label={`Try ${id}`}>
        Try
      </Link>
    </li>
  )
}

/** The file's name without its ending is the agent's id. */
function idOf(file: string): string {
  return file.replace(/^.*\//u, '').replace(/\.ya?ml$/u, '')
}

function LoadErrors({ errors }: { errors: readonly AgentFault[] }) {
  return (
    <section className={css.errors} aria-label="Files with mistakes">
      <h2>
        {errors.length} {errors.length === 1 ? 'file has mistakes' : 'files have mistakes'}
      </h2>
      <ul>
        {errors.map(({ file, message, line }) => (
          <li key={file}>
            <Link href={`/agents/${encodeURIComponent(idOf(file))}${line === undefined ? '' : `?line=${line}`}`}>
              {file}
            </Link>
            <pre title={message}>{message}</pre>
          </li>
        ))}
      </ul>
    </section>
  )
}
