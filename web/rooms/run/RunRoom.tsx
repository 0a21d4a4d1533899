import { Empty } from '../../kit/Empty.tsx'

export default function RunRoom({ id }: { id: string }) {
  return <Empty title={`Run ${id}`} />
}
