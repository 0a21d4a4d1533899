/** The playground: a chat with an agent, and what went over the wire beside it. */
import { useEffect } from 'react'
import { Link, useLocation } from 'wouter'
import { useAgents } from '../../data/hooks.ts'
import { remember, remembered } from '../../data/remember.ts'
import { useSignedIn } from '../../data/server.ts'
import { Empty, LinkList } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { ChatView } from './ChatView.tsx'
import { WithChats } from './chats/WithChats.tsx'
import { firstAgent } from './prompts.ts'

export default function ChatRoom({ agent }: { agent: string | undefined }) {
  const { value, error, isLoading, reload } = useAgents()
  const [, navigate] = useLocation()
  const user = useSignedIn()
  const agents = value?.agents
  const last = remembered('agent')
  const chosen = agent ?? (agents?.some(({ id }) => id === last) === true ? last : firstAgent(agents ?? []))
  const isKnown = agents?.some(({ id }) => id === chosen) === true

  useEffect(() => {
    if (chosen === undefined || !isKnown) return
    if (agent !== undefined) return remember('agent', chosen)
    // Whoever has left before the agents came is not called back.
    if (!/^\/(?:chat\/?)?$/u.test(location.pathname)) return
    navigate(`/chat/${encodeURIComponent(chosen)}${location.search}`, { replace: true })
  }, [agent, chosen, isKnown, navigate])

  if (agents === undefined) return isLoading ? <Skeleton rows={6} /> : <ErrorNote error={error} onRetry={reload} />
  if (chosen === undefined) {
    if (user?.role === 'user') return <Empty title="No agent is open to you." />
    return (
      <Empty title="There are no agents yet.">
        An agent is one YAML file. <Link href="/agents?new">Make the first one</Link>
      </Empty>
    )
  }
  const facts = agents.find(({ id }) => id === chosen)
  if (facts === undefined) {
    const fault = value!.errors.find(({ file }) => file.includes(chosen))
    return (
      <Empty title={`There is no agent ${chosen}.`}>
        {fault === undefined ? (
          <LinkList
            links={[
              ...agents.slice(0, 12).map(({ id, name = id }) => ({
                href: `/chat/${encodeURIComponent(id)}`,
                label: name,
              })),
              { href: '/agents', label: 'All agents' },
            ]}
          />
        ) : (
          <>
            {fault.file}: {fault.message}
            <LinkList links={[{ href: `/agents/${encodeURIComponent(chosen)}`, label: 'Open the file' }]} />
          </>
        )}
      </Empty>
    )
  }
  return (
    <WithChats agent={chosen} agents={agents.map(({ id }) => id)}>
      <ChatView key={chosen} agent={facts} agents={agents} />
    </WithChats>
  )
}
