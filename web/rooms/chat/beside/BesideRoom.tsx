/** Two to four agents or models side by side, asked the same. */
import { useEffect } from 'react'
import { useLocation, useSearch } from 'wouter'
import { useAgents } from '../../../data/hooks.ts'
import { useMayEdit } from '../../../data/edit-token.ts'
import { remembered } from '../../../data/remember.ts'
import { useServer } from '../../../data/server.ts'
import { Empty, LinkList } from '../../../kit/Empty.tsx'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { Skeleton } from '../../../kit/Skeleton.tsx'
import { firstAgent } from '../prompts.ts'
import { Beside } from './Beside.tsx'
import { besidePath, columnsIn, fewestColumns, firstColumns } from './columns.ts'

/** Why no models can be chosen: that is to run an agent as it is not written. */
const reasons: Readonly<Record<string, string>> = {
  false: 'Only people who may edit agents can choose models here.',
  token: 'To choose models, open the address for editing that millrace serve prints.',
}

export default function BesideRoom() {
  const { value, error, isLoading, reload } = useAgents()
  const server = useServer().facts
  const canChange = useMayEdit(server?.edit)
  const search = useSearch()
  const [, navigate] = useLocation()
  const agents = value?.agents
  const isWhole = columnsIn(search).length >= fewestColumns

  useEffect(() => {
    // Whoever has left before the agents came is not called back.
    if (agents === undefined || server === undefined || isWhole || location.pathname !== '/beside') return
    const last = remembered('agent')
    const first = agents.find(({ id }) => id === last)?.id ?? firstAgent(agents)
    if (first === undefined) return
    const ids = agents.map(({ id }) => id)
    const columns = firstColumns(columnsIn(search), { agents: ids, first, canChange })
    navigate(besidePath(columns, search), { replace: true })
  }, [agents, server, canChange, isWhole, search, navigate])

  if (agents === undefined) return isLoading ? <Skeleton rows={6} /> : <ErrorNote error={error} onRetry={reload} />
  if (agents.length === 0 && !isWhole) {
    return (
      <Empty title="There are no agents yet.">
        <LinkList links={[{ href: '/agents?new', label: 'Make the first one' }]} />
      </Empty>
    )
  }
  return isWhole ? (
    <Beside agents={agents} reason={canChange || server === undefined ? undefined : reasons[String(server.edit)]} />
  ) : (
    <Skeleton rows={6} />
  )
}
