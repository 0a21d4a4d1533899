/** One run as a turn of a conversation. */
import { Link } from 'wouter'
import type { ShownRun } from '../../../src/client/client.ts'
import { summaryWords } from '../../../src/fold/summary-words.ts'
import { hasEnded, type RunRow } from '../../../src/part/log.ts'
import { client } from '../../data/client.ts'
import { useLiveRun } from '../../data/hooks.ts'
import { useResource } from '../../data/resource.ts'
import { Button } from '../../kit/Button.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { cost, duration, moment, tokens } from '../../kit/format.ts'
import { Icon } from '../../kit/Icon.tsx'
import { JsonTree } from '../../kit/JsonTree.tsx'
import { Markdown } from '../../kit/Markdown.tsx'
import { OpenRequest } from '../../kit/OpenRequest.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { Status } from '../../kit/Status.tsx'
import { saidIn, type TurnLine } from './turn.ts'
import css from './Turn.module.css'

interface Props {
  run: RunRow
  siblings: readonly RunRow[]
  /** Its input is the whole conversation. */
  isWhole: boolean
  show(id: string): void
}

/** Entries of a run that is shown here; one that is longer is a link. */
const longest = 200_000

export function Turn({ run, siblings, isWhole, show }: Props) {
  const isLong = run.lastSeq > longest
  const isOver = hasEnded(run.status)
  const live = useLiveRun(isOver || isLong ? undefined : run.id)
  const key = isOver && !isLong ? `turn ${run.id}` : undefined
  const { value, error, reload } = useResource<ShownRun>(key, () => client().show(run.id))
  const view = isOver ? value : live.view
  const said = view === undefined ? undefined : saidIn(view.input['messages'], view.messages, isWhole)
  return (
    <li className={css.turn} data-run={run.id}>
      {isLong && <p className={css.note}>This run is too long to be shown here.</p>}
      {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
      {said === undefined && !isLong && error === undefined && <Skeleton rows={2} />}
      {said?.map((each, i) => (
        <Piece key={i} said={each} isOpen={!isOver && i === said.length - 1} />
      ))}
      {view?.summaries?.map((summary) => (
        <details key={summary.seq} className={css.fold} data-testid="thread-summary">
          <summary>
            <Icon name="menu" /> <b>Summarized</b> <span className={css.what}>{summaryWords(summary)}</span>
          </summary>
          {summary.text !== undefined && <p className={css.thought}>{summary.text}</p>}
        </details>
      ))}
      {run.status === 'suspended' &&
        view?.requests.map((request) => <OpenRequest key={request.requestId} runId={run.id} request={request} />)}
      {run.error !== undefined && (
        <p className={css.fault}>
          <Icon name="warn" /> {run.error.message}
        </p>
      )}
      <footer className={css.foot}>
        <Branches run={run} siblings={siblings} show={show} />
        <Status status={run.status} />
        <span>{run.agent}</span>
        {isOver && <span className="num">{duration((run.endedAt ?? run.updatedAt) - run.startedAt)}</span>}
        <span className="num">{tokens(run.usage)} tok</span>
        {run.cost !== undefined && <span className="num">{cost(run.cost)}</span>}
        <time dateTime={new Date(run.startedAt).toISOString()} className="num">
          {moment(run.startedAt).slice(0, 16)}
        </time>
        <Link href={`/runs/${encodeURIComponent(run.id)}`}>Run</Link>
      </footer>
    </li>
  )
}

function Branches({ run, siblings, show }: Pick<Props, 'run' | 'siblings' | 'show'>) {
  if (siblings.length < 2) return null
  const at = siblings.findIndex(({ id }) => id === run.id)
  const [before, after] = [siblings[at - 1], siblings[at + 1]]
  return (
    <span className={css.branches}>
      <Button
        look="quiet"
        icon="left"
        aria-label="Previous branch"
        disabled={before === undefined}
        onClick={() => before && show(before.id)}
      />
      <span className="num" aria-label={`Branch ${at + 1} of ${siblings.length}`} role="img">
        {at + 1}/{siblings.length}
      </span>
      <Button
        look="quiet"
        icon="right"
        aria-label="Next branch"
        disabled={after === undefined}
        onClick={() => after && show(after.id)}
      />
    </span>
  )
}

function Piece({ said, isOpen }: { said: TurnLine; isOpen: boolean }) {
  switch (said.kind) {
    case 'user':
      return <div className={css.user}>{said.text}</div>
    case 'text':
      return (
        <div className={css.answer}>
          <Markdown text={said.text} isOpen={isOpen} />
        </div>
      )
    case 'reasoning':
      return (
        <details className={css.fold}>
          <summary>
            <Icon name="right" /> Thought
          </summary>
          <p className={css.thought}>{said.text}</p>
        </details>
      )
    case 'file':
      return (
        <p className={css.note}>
          <Icon name="file" /> {said.name}
        </p>
      )
    case 'tool':
      return (
        <details className={css.fold} data-error={said.isError || undefined}>
          <summary>
            <Icon name="tool" /> <b>{said.name}</b> <code>{short(said.input)}</code>
            {said.output !== undefined && <code className={css.result}>→ {short(said.output)}</code>}
          </summary>
          <JsonTree value={said.input} name="arguments" />
          {said.output !== undefined && <JsonTree value={said.output} name="result" />}
        </details>
      )
  }
}

function short(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > 120 ? `${text.slice(0, 119)}…` : text
}
