import { Empty } from '../../kit/Empty.tsx'

export default function OverviewRoom() {
  return <Empty title="Overview"></Empty>
}
