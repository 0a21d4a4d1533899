import { Empty } from '../../kit/Empty.tsx'

export default function CompareRoom() {
  return <Empty title="Compare"></Empty>
}
