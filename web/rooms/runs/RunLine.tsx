/** A run as a row of the list: in columns, or in two lines. */
import { memo, type MouseEvent, type ReactNode } from 'react'
import { Link } from 'wouter'
import { inShort } from '../../kit/error-words.ts'
import { ago, cost, duration, moment, tokens } from '../../kit/format.ts'
import { useThreadName } from '../../data/server.ts'
import { Icon } from '../../kit/Icon.tsx'
import { Owner } from '../../kit/Owner.tsx'
import { Status } from '../../kit/Status.tsx'
import { failedBy } from '../../kit/status-words.ts'
import { placeOf, type RowPosition } from '../../kit/VirtualList.tsx'
import type { RunRow } from '../../../src/part/log.ts'
import type { Column, ColumnId } from './columns.ts'
import { tookOf } from './measures.ts'
import type { Said } from './useVerdicts.ts'
import css from './RunLine.module.css'

interface Props extends RowPosition {
  run: RunRow
  /** Rounded, so that most rows are not drawn again each second. */
  now: number
  isSelected: boolean
  isMarked: boolean
  /** Absent: in two lines. */
  shown: readonly Column[] | undefined
  /** The widths of the columns. */
  grid: string
  /** Whether whose they are is shown. */
  hasOwners: boolean
  said: Said | undefined
  /** `isRange`: all from the last one that was marked. */
  onMark: (run: RunRow, isRange: boolean) => void
}

export const RunLine = memo(function RunLine({ shown, ...props }: Props) {
  return shown === undefined ? <TwoLines {...props} /> : <Columns {...props} shown={shown} />
})

type ColumnsProps = Props & { shown: readonly Column[] }

function Columns({ run, isSelected, rowIndex, top, height, ...props }: ColumnsProps) {
  const { style, ...place } = placeOf({ rowIndex, top, height }, css.row)
  return (
    <tr
      {...place}
      style={{ ...style, gridTemplateColumns: props.grid }}
      data-testid="run-row"
      data-id={run.id}
      data-selected={isSelected || undefined}
    >
      <td className={css.mark}>
        <Mark run={run} {...props} />
      </td>
      {props.shown.map(({ id, isNumber, isCompact }) => (
        <td key={id} className={isNumber ? `${css.number} num` : css[id]} title={titleOf(id, run)}>
          {id === 'words' ? (
            <Title run={run} isSelected={isSelected} />
          ) : id === 'thread' ? (
            <Thread run={run} />
          ) : (
            cellOf(id, run, { ...props, isCompact })
          )}
        </td>
      ))}
    </tr>
  )
}

interface CellProps extends Pick<Props, 'now' | 'said'> {
  isCompact?: boolean | undefined
}

/** What a cell has; the words and the thread are links. */
function cellOf(id: ColumnId, run: RunRow, { now, said, isCompact = false }: CellProps): ReactNode {
  switch (id) {
    case 'status':
      return <Status status={run.status} compact={isCompact} />
    case 'agent':
      return run.agent
    case 'user':
      return <Owner owner={run.owner} tenant={run.tenant} />
    case 'error':
      // What ended it from outside is no error of its own.
      return run.errors === undefined ? failedBy(run.status) : <Errors run={run} />
    case 'started':
      return ago(run.startedAt, now)
    case 'took':
      return duration(tookOf(run, now))
    case 'first':
      return run.firstTokenMs === undefined ? '–' : duration(run.firstTokenMs)
    case 'tokens':
      return tokens(run.usage)
    case 'cost':
      return cost(run.cost)
    case 'model':
      return run.models?.join(', ') ?? '–'
    case 'client':
      return run.protocol
    case 'verdict':
      return <Verdict said={said} />
    default:
      return null
  }
}

function titleOf(id: ColumnId, run: RunRow): string | undefined {
  if (id === 'started') return moment(run.startedAt)
  if (id === 'agent') return run.agent
  return id === 'model' ? run.models?.join(', ') : undefined
}

function Mark({ run, isMarked, onMark }: Pick<Props, 'run' | 'isMarked' | 'onMark'>) {
  return (
    <input
      type="checkbox"
      checked={isMarked}
      aria-label={`Mark: ${run.title ?? run.id}`}
      onChange={() => undefined}
      onClick={(event: MouseEvent) => onMark(run, event.shiftKey)}
      tabIndex={-1}
    />
  )
}

function Errors({ run: { errors = 0, error } }: Pick<Props, 'run'>) {
  if (errors === 0) return null
  return (
    <>
      <span>✕ {errors}</span>
      {error !== undefined && (
        <span className={css.why} title={error.message}>
          {inShort(error)}
        </span>
      )}
    </>
  )
}

function Verdict({ said }: Pick<Props, 'said'>) {
  if (said === undefined) return null
  return (
    <>
      {said.up > 0 && (
        <span title="Good">
          <Icon name="thumbUp" size={14} /> {said.up}
          <span className="visually-hidden"> good</span>
        </span>
      )}
      {said.down > 0 && (
        <span title="Bad">
          <Icon name="thumbDown" size={14} /> {said.down}
          <span className="visually-hidden"> bad</span>
        </span>
      )}
    </>
  )
}

function Thread({ run }: Pick<Props, 'run'>) {
  const { name } = useThreadName()(run.threadId)
  return (
    <Link href={`/threads/${encodeURIComponent(run.threadId)}`} title={`Thread ${name}`} tabIndex={-1}>
      {name.replace(/^thread_/u, '')}
    </Link>
  )
}

function TwoLines({ run, now, isSelected, hasOwners, rowIndex, top, height, ...props }: Omit<Props, 'shown'>) {
  return (
    <tr
      {...placeOf({ rowIndex, top, height }, css.narrow)}
      data-testid="run-row"
      data-id={run.id}
      data-selected={isSelected || undefined}
    >
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
        {(run.errors ?? 0) > 0 && (
          <span className={css.error}>
            <Errors run={run} />
          </span>
        )}
      </td>
      <td className={css.mark}>
        <Mark run={run} {...props} />
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
    </>
  )
}
