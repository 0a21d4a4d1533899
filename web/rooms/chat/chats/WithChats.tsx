/** A chat with the list of all chats beside it. */
import { lazy, Suspense, type ReactNode } from 'react'
import { Dialog } from '../../../kit/Dialog.tsx'
import { Panes } from '../../../kit/Panes.tsx'
import { Skeleton } from '../../../kit/Skeleton.tsx'
import { useChatsShown } from './shown.ts'
import css from './Chats.module.css'

const ChatList = lazy(() => import('./ChatList.tsx'))

interface Props {
  agent: string
  /** Those that can be chatted with. */
  agents: readonly string[]
  children: ReactNode
}

export function WithChats({ agent, agents, children }: Props) {
  const { isPane, isShown, toggle, leave } = useChatsShown()
  const list = (
    <Suspense fallback={<Skeleton rows={8} />}>
      <ChatList agent={agent} agents={agents} onFold={isPane ? toggle : undefined} onFound={leave} />
    </Suspense>
  )
  return (
    <>
      <Panes name="chats" label="Chats" at="left" size={264} side={isPane && isShown ? list : undefined}>
        {children}
      </Panes>
      <Dialog className={css.drawer!} isOpen={!isPane && isShown} title="Chats" onClose={leave}>
        {list}
      </Dialog>
    </>
  )
}
