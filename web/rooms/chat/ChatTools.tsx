/** What can be done with a chat: buttons where there is room for words, and a menu with words where there is not. */
import { Button } from '../../kit/Button.tsx'
import type { IconName } from '../../kit/Icon.tsx'
import { Menu } from '../../kit/Menu.tsx'
import css from './chat.module.css'

export interface ChatTool {
  icon: IconName
  word: string
  /** For those who hear it, if it says more than the word. */
  label?: string
  title?: string
  isPressed?: boolean
  /** Something there is not as usual. */
  isMarked?: boolean
  isDisabled?: boolean
  /** Only in the menu: elsewhere there is another button for it. */
  isOfMenu?: boolean
  use(): void
}

export function ChatTools({ tools, isMenu }: { tools: readonly ChatTool[]; isMenu: boolean }) {
  if (!isMenu)
    return tools.filter(({ isOfMenu }) => isOfMenu !== true).map((tool) => <Tool key={tool.word} of={tool} />)
  const marked = tools.find(({ isMarked }) => isMarked === true)
  return (
    <span className={css.marked}>
      <Menu label={marked?.label === undefined ? 'More' : `More. ${marked.label}`}>
        {tools.map((tool) => (
          <Tool key={tool.word} of={tool} look="quiet" />
        ))}
      </Menu>
      {marked !== undefined && <span className={css.mark} />}
    </span>
  )
}

function Tool({ of, look }: { of: ChatTool; look?: 'quiet' }) {
  const { icon, word, label = word, title, isPressed, isMarked, isDisabled, use } = of
  return (
    <Button
      icon={icon}
      {...(look && { look })}
      aria-label={label}
      aria-pressed={isPressed}
      title={title}
      disabled={isDisabled}
      className={css.marked!}
      onClick={use}
    >
      {word}
      {isMarked === true && <span className={css.mark} />}
    </Button>
  )
}
