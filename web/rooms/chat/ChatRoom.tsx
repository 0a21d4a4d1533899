import { Empty } from '../../kit/Empty.tsx'

export default function ChatRoom({ agent }: { agent: string | undefined }) {
  return <Empty title="Chat">{agent}</Empty>
}
