/** Whether the list of chats is there: a pane that can be folded, or on a smaller screen a drawer that is opened. */
import { useSyncExternalStore } from 'react'
import { useMedia } from '../../../data/media.ts'
import { useQuery } from '../../../data/query.ts'
import { remember, useRemembered } from '../../../data/remember.ts'

let isOpen = false
const listeners = new Set<() => void>()

function setOpen(next: boolean): void {
  isOpen = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

export interface ChatsShown {
  /** It has room beside the chat. */
  isPane: boolean
  isShown: boolean
  toggle(): void
  /** What was looked for is found: a drawer gives way, a pane stays. */
  leave(): void
}

export function useChatsShown(): ChatsShown {
  // With another pane open there is room for both on a wide screen only.
  const hasPanel = useQuery().get('panel') !== undefined
  const isPane = useMedia(`(min-width: ${hasPanel ? 1360 : 1024}px)`)
  const isDrawn = useSyncExternalStore(subscribe, () => isOpen)
  const isFolded = useRemembered('chats') === 'folded'
  return {
    isPane,
    isShown: isPane ? !isFolded : isDrawn,
    toggle: () => (isPane ? remember('chats', isFolded ? undefined : 'folded') : setOpen(!isOpen)),
    leave: () => setOpen(false),
  }
}
