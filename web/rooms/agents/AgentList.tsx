/** All agents, how they were used lately, and the files that could not be loaded, with their mistakes. */
import { useRef } from 'react'
import { Link } from 'wouter'
import type { RunRow } from '../../../src/part/log.ts'
import { api } from '../../data/client.ts'
import { useAgents, type AgentFacts } from '../../data/hooks.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { useQuery } from '../../data/query.ts'
import { useResource } from '../../data/resource.ts'
import { useServer, useSignedIn } from '../../data/server.ts'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { ago, cost } from '../../kit/format.ts'
import { SearchField } from '../../kit/SearchField.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useRowKeys } from '../../kit/use-row-keys.ts'
import { agentUses, mostRuns, type AgentUse } from './agent-use.ts'
import { brokenFiles, type BrokenFile } from './broken-files.ts'
import { NewAgent } from './NewAgent.tsx'
import css from './AgentList.module.css'

export function AgentList() {
  const { value, error, reload } = useAgents()
  const canEdit = useMayEdit(useServer().facts?.edit)
  const { get, set } = useQuery()
  const search = useRef<HTMLInputElement>(null)
  const toFirst = useRowKeys({ what: 'agent', search })
  const recent = useResource('recent-runs-of-agents', (signal) =>
    api<{ runs: RunRow[] }>(`/api/runs?limit=${mostRuns}`, { signal }),
  ).value?.runs
  if (value === undefined)
    return error === undefined ? <Skeleton rows={6} /> : <ErrorNote error={error} onRetry={reload} />
  const { agents, errors } = value
  const broken = brokenFiles(errors)
  const words = (get('q') ?? '').toLowerCase().split(/\s+/u).filter(Boolean)
  const fits = (text: string) => words.every((word) => text.toLowerCase().includes(word))
  const shown = agents.filter((agent) => fits(textOf(agent)))
  const shownBroken = broken.filter(({ file }) => fits(file))
  const uses = recent && agentUses(recent)
  return (
    <div className={css.list}>
      <h1 className="visually-hidden">Agents</h1>
      {(canEdit || agents.length > 0) && (
        <div className={css.bar}>
          <SearchField
            ref={search}
            value={get('q') ?? ''}
            label="Find in agents"
            onChange={(q) => set({ q: q || undefined }, { replace: true })}
            onDown={toFirst}
          />
          {canEdit && <NewAgent agents={agents} />}
        </div>
      )}
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      {agents.length === 0 && broken.length === 0 ? (
        <NoAgents />
      ) : shown.length === 0 && shownBroken.length === 0 ? (
        <Empty title="No agent has these words." />
      ) : (
        <ul>
          {shownBroken.map((file) => (
            <BrokenRow key={file.file} {...file} />
          ))}
          {shown.map((agent) => (
            <AgentRow key={agent.id} agent={agent} use={uses?.get(agent.id)} isKnown={uses !== undefined} />
          ))}
        </ul>
      )}
      {recent !== undefined && recent.length >= mostRuns && (
        <p className={css.note}>Numbers are those of the last {mostRuns} runs.</p>
      )}
    </div>
  )
}

function textOf({ id, name, description, steps, tools }: AgentFacts): string {
  return [id, name, description, ...steps.map(({ model }) => model), ...tools].join('\n')
}

function NoAgents() {
  if (useSignedIn()?.role === 'user') return <Empty title="No agent is open to you." />
  return (
    <Empty title="There are no agents yet.">
      An agent is one YAML file in the agents folder. Make the first one here, or with <code>npx millrace init</code>.
    </Empty>
  )
}

interface RowProps {
  agent: AgentFacts
  use: AgentUse | undefined
  /** The runs have been read. */
  isKnown: boolean
}

function AgentRow({ agent: { id, name = id, description, steps, tools }, use, isKnown }: RowProps) {
  const models = [...new Set(steps.flatMap(({ model }) => model ?? []))]
  const path = encodeURIComponent(id)
  const about = `${steps.length === 1 ? '1 step' : `${steps.length} steps`}, ${toolsInWords(tools)}`
  return (
    <li className={css.agent} data-testid="agent-row">
      <p className={css.name}>
        <Link href={`/agents/${path}`} data-row>
          {name}
        </Link>
        {name !== id && <code>{id}</code>}
      </p>
      <p className={css.what} title={description}>
        {description}
      </p>
      <p className={css.model} title={[about, ...tools].join('\n')}>
        {models.length > 0 ? <code>{models.join(', ')}</code> : about}
      </p>
      <p className={css.use}>
        {use === undefined ? (
          isKnown && 'no runs'
        ) : (
          <>
            <Link href={`/agents/${path}?tab=runs`}>{use.runs === 1 ? '1 run' : `${use.runs} runs`}</Link>
            {use.failed > 0 && (
              <Link href={`/runs?${new URLSearchParams({ agent: id, status: 'failed' })}`} data-failed>
                {use.failed} failed
              </Link>
            )}
          </>
        )}
      </p>
      <p className={`${css.number} num`} title={use && 'Used last'}>
        {use && ago(use.lastAt)}
      </p>
      <p className={`${css.number} num`} title={use?.cost === undefined ? undefined : 'Cost of these runs'}>
        {use?.cost !== undefined && cost(use.cost)}
      </p>
      <Link href={`/chat/${path}`} className={css.try} aria-label={`Try ${id}`}>
        Try
      </Link>
    </li>
  )
}

function toolsInWords(tools: readonly string[]): string {
  return tools.length === 0 ? 'no tools' : tools.length === 1 ? '1 tool' : `${tools.length} tools`
}

const mostFaults = 3

function BrokenRow({ file, id, faults }: BrokenFile) {
  const path = `/agents/${encodeURIComponent(id)}`
  const more = faults.length - mostFaults
  return (
    <li className={css.agent} data-broken data-testid="broken-row">
      <p className={css.name}>
        <span aria-hidden="true">✕</span>
        <Link href={path} data-row>
          {file}
        </Link>
      </p>
      <div className={css.faults}>
        <p>{faults.length === 1 ? '1 mistake' : `${faults.length} mistakes`}: this agent cannot run.</p>
        <ul>
          {faults.slice(0, mostFaults).map(({ line, place, text }, i) => (
            <li key={i}>
              {place !== '' && (
                <Link href={line === undefined ? path : `${path}?line=${line}`} className="num">
                  {place}
                </Link>
              )}
              <span>{text}</span>
            </li>
          ))}
        </ul>
        {more > 0 && <Link href={path}>{more} more</Link>}
      </div>
    </li>
  )
}
