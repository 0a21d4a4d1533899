/** Which agent, which thread, and what can be done with it. */
import { useRef } from 'react'
import { Link } from 'wouter'
import type { AgentFacts } from '../../data/hooks.ts'
import { useWidth } from '../../data/media.ts'
import { Button } from '../../kit/Button.tsx'
import { ChatsButton } from './chats/ChatsButton.tsx'
import { useChatsShown } from './chats/shown.ts'
import { ChatTools, type ChatTool } from './ChatTools.tsx'
import css from './chat.module.css'

interface Props {
  agent: AgentFacts
  agents: readonly AgentFacts[]
  threadId: string | undefined
  /** What the thread is called. */
  title: string | undefined
  tools: readonly ChatTool[]
  onAgent(id: string): void
  onNew(): void
}

/** px. Below it the tools are in a menu. */
const roomy = 640

export function ChatHeader({ agent, agents, threadId, title, tools, onAgent, onNew }: Props) {
  const chats = useChatsShown()
  const box = useRef<HTMLElement>(null)
  const isMenu = useWidth(box) <= roomy
  const isNew = threadId === undefined
  const begin: ChatTool = { icon: 'plus', word: 'New chat', isDisabled: isNew, isOfMenu: true, use: onNew }
  return (
    <header ref={box} className={css.head}>
      <ChatsButton />
      <select
        className={css.agent}
        data-wide={isMenu || undefined}
        aria-label="Agent"
        title={agent.name ?? agent.id}
        value={agent.id}
        onChange={(event) => onAgent(event.target.value)}
      >
        {agents.map(({ id, name = id }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      {!isMenu && (
        <>
          {!isNew && (
            <Link className={css.thread} href={`/threads/${encodeURIComponent(threadId)}`} title={title}>
              {title}
            </Link>
          )}
          <span className={css.space} />
        </>
      )}
      <ChatTools tools={[begin, ...tools]} isMenu={isMenu} />
      {!isMenu && !(chats.isPane && chats.isShown) && (
        <Button icon="plus" aria-label="New chat" onClick={onNew} disabled={isNew}>
          New
        </Button>
      )}
    </header>
  )
}
