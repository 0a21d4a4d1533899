/** A run as a row of the list. */
import { memo } from 'react'
import { Link } from 'wouter'
import { ago, cost, duration, moment, shortId, tokens } from '../../kit/format.ts'
import { useThreadName } from '../../data/server.ts'
import { Owner } from '../../kit/Owner.tsx'
import { Status } from '../../kit/Status.tsx'
import { placeOf, type RowPosition } from '../../kit/VirtualList.tsx'
import type { RunRow } from '../../../src/part/log.ts'
import { tookOf } from './measures.ts'
import css from './RunLine.module.css'

interface Props extends RowPosition {
  run: RunRow
  /** Rounded, so that most rows are not drawn again each second. */
  now: number
  isSelected: boolean
  isMarked: boolean
  isNarrow: boolean
  /** Whether whose they are is shown. */
  hasOwners: boolean
  onMark: (id: string) => void
}

export const RunLine = memo(function RunLine({ isNarrow, ...props }: Props) {
  return isNarrow ? <Narrow {...props} /> : <Wide {...props} />
})

function Wide({ run, now, isSelected, isMarked, hasOwners, onMark, ...place }: Omit<Props, 'isNarrow'>) {
  const name = run.title ?? run.id
  const thread = useThreadName()(run.threadId)
  return (
    <tr
      {...placeOf(place, `${css.row} ${hasOwners ? css.owned : ''}`)}
      data-testid="run-row"
      data-id={run.id}
      data-selected={isSelected || undefined}
    >
      <td className={css.mark}>
        <input
          type="checkbox"
          checked={isMarked}
          aria-label={`Mark to compare: ${name}`}
          onChange={() => onMark(run.id)}
          tabIndex={-1}
        />
      </td>
      <td>
        <Status status={run.status} />
      </td>
      <td className={css.agent} title={run.agent}>
        {run.agent}
      </td>
      {hasOwners && (
        <td className={css.owner}>
          <Owner owner={run.owner} tenant={run.tenant} />
        </td>
      )}
      <td className={css.words}>
        <Title run={run} isSelected={isSelected} />
      </td>
      <td className={`${css.errors} num`}>
        {(run.errors ?? 0) > 0 && <span title={`${run.errors} errors`}>✕ {run.errors}</span>}
      </td>
      <td className={`${css.number} num`} title={moment(run.startedAt)}>
        {ago(run.startedAt, now)}
      </td>
      <td className={`${css.number} num`}>{duration(tookOf(run, now))}</td>
      <td className={`${css.number} num`}>{run.firstTokenMs === undefined ? '–' : duration(run.firstTokenMs)}</td>
      <td className={`${css.number} num`}>{tokens(run.usage)}</td>
      <td className={`${css.number} num`}>{cost(run.cost)}</td>
      <td className={css.thread}>
        <Link href={`/threads/${encodeURIComponent(run.threadId)}`} title={`Thread ${thread.name}`} tabIndex={-1}>
          {shortId(thread.name)}
        </Link>
      </td>
    </tr>
  )
}

function Narrow({ run, now, isSelected, hasOwners, ...place }: Omit<Props, 'isNarrow' | 'isMarked' | 'onMark'>) {
  return (
    <tr {...placeOf(place, css.narrow)} data-testid="run-row" data-id={run.id} data-selected={isSelected || undefined}>
      <td className={css.first}>
        <Status status={run.status} compact />
        <Title run={run} isSelected={isSelected} />
      </td>
      <td className={`${css.second} num`}>
        <span className={css.agent}>{run.agent}</span>
        {hasOwners && <Owner owner={run.owner} tenant={run.tenant} />}
        <span>{ago(run.startedAt, now)}</span>
        <span>{duration(tookOf(run, now))}</span>
        <span>{tokens(run.usage)} tok</span>
        {run.cost !== undefined && <span>{cost(run.cost)}</span>}
        {(run.errors ?? 0) > 0 && <span className={css.errors}>✕ {run.errors}</span>}
      </td>
    </tr>
  )
}

function Title({ run, isSelected }: Pick<Props, 'run' | 'isSelected'>) {
  return (
    <>
      {run.parentRunId !== undefined && (
        <span className={css.child} title={`Started by run ${run.parentRunId}`}>
          ↳<span className="visually-hidden"> started by another run: </span>
        </span>
      )}
      <Link
        href={`/runs/${encodeURIComponent(run.id)}`}
        className={css.title}
        aria-current={isSelected ? 'true' : undefined}
        // It lies over the whole row, and so over what may be cut there.
        title={[run.title, run.error?.message].filter(Boolean).join('\n')}
      >
        {run.title ?? <span className={css.untitled}>{run.id}</span>}
      </Link>
      {run.error !== undefined && <span className={css.why}>{run.error.message}</span>}
    </>
  )
}

/** The heads of the columns of wide rows. */
export function RunHeads({ hasOwners }: { hasOwners: boolean }) {
  return (
    <tr className={`${css.row} ${hasOwners ? css.owned : ''}`}>
      <th scope="col">
        <span className="visually-hidden">Marked</span>
      </th>
      <th scope="col">Status</th>
      <th scope="col">Agent</th>
      {hasOwners && <th scope="col">User</th>}
      <th scope="col">First words</th>
      <th scope="col">
        <span className="visually-hidden">Errors</span>
      </th>
      {['Age', 'Took', 'First token', 'Tokens', 'Cost'].map((name) => (
        <th key={name} scope="col" className={css.number}>
          {name}
        </th>
      ))}
      <th scope="col" className={css.thread}>
        Thread
      </th>
    </tr>
  )
}
