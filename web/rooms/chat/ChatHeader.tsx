/** Which agent, which thread, and what can be done with it. */
import type { ReactNode } from 'react'
import { Link } from 'wouter'
import type { AgentFacts } from '../../data/hooks.ts'
import { Button } from '../../kit/Button.tsx'
import { ChatsButton } from './chats/ChatsButton.tsx'
import { useChatsShown } from './chats/shown.ts'
import css from './chat.module.css'

interface Props {
  agent: AgentFacts
  agents: readonly AgentFacts[]
  threadId: string | undefined
  /** What the thread is called. */
  title: string | undefined
  onAgent(id: string): void
  onNew(): void
  children?: ReactNode
}

export function ChatHeader({ agent, agents, threadId, title, onAgent, onNew, children }: Props) {
  const chats = useChatsShown()
  return (
    <header className={css.head}>
      <ChatsButton />
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
        <Link className={css.thread} href={`/threads/${encodeURIComponent(threadId)}`} title={title}>
          {title}
        </Link>
      )}
      <span className={css.space} />
      {children}
      {!(chats.isPane && chats.isShown) && (
        <Button
          icon="plus"
          className={css.newChat!}
          aria-label="New chat"
          onClick={onNew}
          disabled={threadId === undefined}
        >
          New
        </Button>
      )}
    </header>
  )
}
