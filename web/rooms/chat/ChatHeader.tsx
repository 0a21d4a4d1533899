/** Which agent, which thread, and what can be done with it. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { AgentFacts } from '../../data/hooks.ts'
import { useThreadName } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { shortId } from '../../kit/format.ts'
import css from './chat.module.css'

interface Props {
  agent: AgentFacts
  agents: readonly AgentFacts[]
  threadId: string | undefined
  onAgent(id: string): void
  onNew(): void
  children?: ReactNode
}

export function ChatHeader({ agent, agents, threadId, onAgent, onNew, children }: Props) {
  const nameOf = useThreadName()
  return (
    <header className={css.head}>
      <select
        className={css.agent}
        aria-label="Agent"
        value={agent.id}
        onChange={(event) => onAgent(event.target.value)}
      >
        {agents.map(({ id, name = id }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {threadId !== undefined && (
        <Link className={css.thread} href={`/threads/${encodeURIComponent(threadId)}`} title={nameOf(threadId).name}>
          thread {shortId(nameOf(threadId).name)}
        </Link>
      )}
      <span className={css.space} />
      {children}
      <Button icon="plus" aria-label="New thread" onClick={onNew} disabled={threadId === undefined}>
        <span className={css.wide}>New</span>
      </Button>
    </header>
  )
}
