import { Empty } from '../../kit/Empty.tsx'

export default function RunsRoom() {
  return <Empty title="Runs"></Empty>
}
