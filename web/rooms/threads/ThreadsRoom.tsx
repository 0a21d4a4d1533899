/** Conversations: the list of them, and one as a chat of its runs. */
import { ThreadList } from './ThreadList.tsx'
import { ThreadView } from './ThreadView.tsx'

export default function ThreadsRoom({ id }: { id: string | undefined }) {
  return id === undefined ? <ThreadList /> : <ThreadView key={id} id={id} />
}
