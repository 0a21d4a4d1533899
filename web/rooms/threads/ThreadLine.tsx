/** A conversation as a row of the list. */
import { Link } from 'wouter'
import type { ThreadRow } from '../../../src/part/thread.ts'
import { useMayDelete, useThreadName } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { ago, cost, count, moment, tokens } from '../../kit/format.ts'
import { Owner } from '../../kit/Owner.tsx'
import { ThreadState } from '../../kit/ThreadState.tsx'
import { placeOf, type RowPosition } from '../../kit/VirtualList.tsx'
import css from './ThreadLine.module.css'

interface Props extends RowPosition {
  thread: ThreadRow
  now: number
  isSelected: boolean
  isNarrow: boolean
  /** Whether whose they are is shown. */
  hasOwners: boolean
  onDelete(thread: ThreadRow): void
}

export function ThreadLine({ isNarrow, ...props }: Props) {
  return isNarrow ? <Narrow {...props} /> : <Wide {...props} />
}

type LineProps = Omit<Props, 'isNarrow'>

function Wide({ thread, now, isSelected, hasOwners, onDelete, ...place }: LineProps) {
  const { name, owner, tenant } = useThreadName()(thread.id)
  const mayDelete = useMayDelete()(owner)
  return (
    <tr
      {...placeOf(place, `${css.row} ${hasOwners ? css.owned : ''}`)}
      data-id={thread.id}
      data-selected={isSelected || undefined}
    >
      <td>
        <ThreadState status={thread.status} />
      </td>
      {hasOwners && (
        <td className={css.owner}>
          <Owner owner={owner} tenant={tenant} />
        </td>
      )}
      <td className={css.words}>
        <Title thread={thread} />
      </td>
      <td className={css.agent} title={thread.agents.join(', ')}>
        {thread.agents.join(', ')}
      </td>
      <td className={`${css.number} num`}>{count(thread.runCount)}</td>
      <td className={`${css.number} ${css.errors} num`}>{thread.errorCount > 0 && `✕ ${thread.errorCount}`}</td>
      <td className={`${css.number} ${css.more} num`}>{tokens(thread.usage)}</td>
      <td className={`${css.number} ${css.more} num`}>{cost(thread.cost)}</td>
      <td className={`${css.number} num`} title={moment(thread.updatedAt)}>
        {ago(thread.updatedAt, now)}
      </td>
      <td className={css.actions}>
        {mayDelete && (
          <Button
            look="quiet"
            icon="close"
            aria-label={`Delete ${thread.title ?? name}`}
            tabIndex={-1}
            onClick={() => onDelete(thread)}
          />
        )}
      </td>
    </tr>
  )
}

function Narrow({ thread, now, isSelected, hasOwners, rowIndex, top, height }: LineProps) {
  const { owner, tenant } = useThreadName()(thread.id)
  return (
    <tr {...placeOf({ rowIndex, top, height }, css.narrow)} data-id={thread.id} data-selected={isSelected || undefined}>
      <td className={css.first}>
        {thread.status === 'idle' ? <span className={css.noState} /> : <ThreadState status={thread.status} compact />}
        <Title thread={thread} />
      </td>
      <td className={`${css.second} num`}>
        <span className={css.agent}>{thread.agents.join(', ')}</span>
        {hasOwners && <Owner owner={owner} tenant={tenant} />}
        <span>{thread.runCount === 1 ? '1 run' : `${count(thread.runCount)} runs`}</span>
        <span>{tokens(thread.usage)} tok</span>
        <span>{ago(thread.updatedAt, now)}</span>
      </td>
    </tr>
  )
}

function Title({ thread }: Pick<Props, 'thread'>) {
  const { name } = useThreadName()(thread.id)
  return (
    <>
      <Link href={`/threads/${encodeURIComponent(thread.id)}`} className={css.title}>
        {thread.title ?? <span className={css.untitled}>{name}</span>}
      </Link>
      {thread.match !== undefined && <span className={css.match}>{thread.match.excerpt}</span>}
    </>
  )
}

/** What the list can be filtered by, as the page calls it. An address may have the name of the API. */
export const threadWords = ['running', 'waiting', 'closed'] as const

export function threadStatusOf(word: string | undefined): string | undefined {
  return word === 'running' ? 'active' : word
}

export function ThreadHeads({ hasOwners }: { hasOwners: boolean }) {
  return (
    <tr className={`${css.row} ${hasOwners ? css.owned : ''}`}>
      <th scope="col">Status</th>
      {hasOwners && <th scope="col">User</th>}
      <th scope="col">First words</th>
      <th scope="col">Agents</th>
      <th scope="col" className={css.number}>
        Runs
      </th>
      <th scope="col">
        <span className="visually-hidden">Errors</span>
      </th>
      {['Tokens', 'Cost', 'Last'].map((name) => (
        <th key={name} scope="col" className={name === 'Last' ? css.number : `${css.number} ${css.more}`}>
          {name}
        </th>
      ))}
      <th scope="col">
        <span className="visually-hidden">Actions</span>
      </th>
    </tr>
  )
}
