import { Empty } from '../../kit/Empty.tsx'

export default function AgentsRoom({ id }: { id: string | undefined }) {
  return <Empty title="Agents">{id}</Empty>
}
