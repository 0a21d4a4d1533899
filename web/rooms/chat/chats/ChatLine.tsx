/** A chat as a row of the list. */
import { Link } from 'wouter'
import type { ThreadRow } from '../../../../src/part/thread.ts'
import { useThreadName } from '../../../data/server.ts'
import { Button } from '../../../kit/Button.tsx'
import { ago, moment } from '../../../kit/format.ts'
import { ThreadState } from '../../../kit/ThreadState.tsx'
import { placeOf, type RowPosition } from '../../../kit/VirtualList.tsx'
import { RenameField } from './RenameField.tsx'
import css from './Chats.module.css'

interface Props extends RowPosition {
  thread: ThreadRow
  now: number
  href: string
  /** The one of the chat beside the list: the others are named. */
  agent: string
  isCurrent: boolean
  isInTabOrder: boolean
  isRenamed: boolean
  /** The id of its menu, if it has one. */
  menu: string | undefined
  /** The menu is that of this row. */
  hasMenu: boolean
  onMenu(thread: ThreadRow): void
  onOpen(): void
  /** It was named, or not. */
  onDone(id: string): void
}

export function ChatLine(props: Props) {
  const { thread, now, href, agent, isCurrent, isInTabOrder, isRenamed, menu, hasMenu } = props
  const { onMenu, onOpen, onDone, ...place } = props
  const { id, status, agents, updatedAt, match } = thread
  const { name } = useThreadName()(id)
  const title = thread.title ?? name
  return (
    <tr {...placeOf(place, css.row)} data-id={id} data-current={isCurrent || undefined}>
      <td className={css.words}>
        {isRenamed ? (
          <RenameField thread={thread} onDone={() => onDone(id)} />
        ) : (
          <Link
            href={href}
            className={css.title}
            title={title}
            aria-current={isCurrent ? 'page' : undefined}
            aria-keyshortcuts="F2 Delete"
            tabIndex={isInTabOrder ? 0 : -1}
            onClick={onOpen}
          >
            {title}
          </Link>
        )}
        <span className={`${css.facts} num`}>
          {(status === 'active' || status === 'waiting') && <ThreadState status={status} />}
          <span title={moment(updatedAt)}>{ago(updatedAt, now)}</span>
          {agents[0] !== agent && <span className={css.agent}>{agents[0]}</span>}
          {match !== undefined && <span className={css.agent}>{match.excerpt}</span>}
        </span>
      </td>
      {menu !== undefined && !isRenamed && (
        <td className={css.actions} data-open={hasMenu || undefined}>
          <Button
            look="quiet"
            icon="menu"
            aria-label={`More for ${title}`}
            tabIndex={-1}
            popoverTarget={menu}
            onClick={() => onMenu(thread)}
          />
        </td>
      )}
    </tr>
  )
}
