import { Empty } from '../../kit/Empty.tsx'

export default function ThreadsRoom({ id }: { id: string | undefined }) {
  return <Empty title="Threads">{id}</Empty>
}
