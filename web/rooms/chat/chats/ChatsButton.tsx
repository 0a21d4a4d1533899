import { Button } from '../../../kit/Button.tsx'
import { useChatsShown } from './shown.ts'

/** Shows the list of chats. Beside an open pane it is not needed: the pane folds itself. */
export function ChatsButton() {
  const { isPane, isShown, toggle } = useChatsShown()
  if (isPane && isShown) return null
  return (
    <Button icon="threads" aria-haspopup={isPane ? undefined : 'dialog'} onClick={toggle}>
      Chats
    </Button>
  )
}
