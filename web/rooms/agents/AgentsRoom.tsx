import { AgentList } from './AgentList.tsx'
import { AgentPage } from './AgentPage.tsx'

export default function AgentsRoom({ id }: { id: string | undefined }) {
  return id === undefined ? <AgentList /> : <AgentPage key={id} id={id} />
}
