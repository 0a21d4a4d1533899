import { useAgents } from '../../data/hooks.ts'
import { useSignedIn } from '../../data/server.ts'
import type { Query } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { filterNames, isFiltered, type RunFilter } from './run-filter.ts'
import css from './RunsRoom.module.css'

const none = Object.fromEntries([...filterNames, 'sel'].map((name) => [name, undefined]))

/** The list is empty: because of its filter, or because nothing has run. */
export function NoRuns({ filter, query }: { filter: RunFilter; query: Query }) {
  const user = useSignedIn()
  const agent = useAgents().value?.agents[0]?.id ?? 'assistant'
  if (isFiltered(filter)) {
    return (
      <Empty title="No run fits this filter.">
        <Button onClick={() => query.set(none)}>Show all runs</Button>
      </Empty>
    )
  }
  const key = user === undefined ? '' : ` -H "Authorization: Bearer $MILLRACE_API_KEY"`
  const body = JSON.stringify({ agentId: agent, input: { messages: 'Hello' } })
  return (
    <Empty title="Nothing has run yet.">
      {user?.role === 'user' ? 'Your runs' : 'Runs of every client'} appear here as they begin. Start one in the chat,
      or paste:
      <code className={css.paste}>
        {`curl ${location.origin}/api/runs -H 'content-type: application/json'${key} -d '${body}'`}
      </code>
    </Empty>
  )
}
