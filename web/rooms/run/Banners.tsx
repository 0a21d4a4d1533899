/** What a reader must not miss: why it failed, what it waits for, and what is wrong with its log. */
import type { RequestView } from '../../../src/fold/run-view.ts'
import { api } from '../../data/client.ts'
import { useResource } from '../../data/resource.ts'
import { useSignedIn } from '../../data/server.ts'
import { DecideAll } from '../../kit/DecideAll.tsx'
import { OpenRequest } from '../../kit/OpenRequest.tsx'
import { Button } from '../../kit/Button.tsx'
import { explain } from '../../kit/error-words.ts'
import { Icon } from '../../kit/Icon.tsx'
import type { EntryOf } from '../../../src/part/entry.ts'
import { agentsAround } from '../../../src/fold/step-tree.ts'
import type { OutlineMark } from '../../../src/fold/outline-item.ts'
import { useEntry } from './data/use-entries.ts'
import { useGrammar } from './data/use-grammar.ts'
import type { Room } from './use-room.ts'
import css from './Banners.module.css'

export function Banners({ room }: { room: Room }) {
  const { end, row, at, snapshot, model } = room
  const error =
    at === undefined || model.facts.state === 'ended'
      ? (end?.error ?? (at === undefined ? row?.error : undefined))
      : undefined
  const told = error && explain(error)
  const fault = useGrammar(room)
  // What waits may be for an operator.
  const isUser = useSignedIn()?.role === 'user'
  const isAsking = snapshot.isLive && at === undefined && model.facts.open.length > 0
  if (error === undefined && fault === undefined && !isAsking && !snapshot.isGone) return null
  return (
    <div className={css.banners}>
      {snapshot.isGone && <p className={css.banner}>This run has been deleted. What was read of it is still here.</p>}
      {error && (
        <div className={css.banner} data-kind="error" role="alert">
          <Icon name="warn" />
          <p>
            {told?.title !== undefined && <b className={css.title}>{told.title}</b>}
            {told?.detail}
            {error.detail !== undefined && <span className={css.detail}>{error.detail}</span>}
          </p>
          <code>{error.code}</code>
          {error.step !== undefined && room.model.tree.at(error.step) && (
            <Button onClick={() => room.select(error.step)}>Show the step</Button>
          )}
        </div>
      )}
      {fault !== undefined && (
        <div className={css.banner} data-kind="fault" role="alert">
          <Icon name="warn" />
          <p>The entries of this run are in an order that cannot be: {fault.text}</p>
          {fault.seq !== undefined && <Button onClick={() => room.select(String(fault.seq))}>Show the entry</Button>}
        </div>
      )}
      {isAsking && (
        <section aria-label={isUser ? 'Waiting requests' : 'Waits for you'} className={css.requests}>
          {model.facts.open.map((mark) => (
            <Asked key={mark.seq} room={room} mark={mark} isRow={model.facts.open.length > 1} />
          ))}
          {model.facts.open.length > 1 && <All room={room} marks={model.facts.open} />}
        </section>
      )}
    </div>
  )
}

/** Several at once. They are asked for together: the rows read one entry each. */
function All({ room: { id }, marks }: { room: Room; marks: readonly OutlineMark[] }) {
  const path = `/api/runs/${encodeURIComponent(id)}/requests`
  const { value } = useResource(`${path} ${marks.map(({ seq }) => seq).join(' ')}`, (signal) =>
    api<{ requests: RequestView[] }>(path, { signal }),
  )
  return value && <DecideAll runId={id} requests={value.requests} />
}

/** `isRow`: one of several, which leave room for the steps. */
function Asked({ room, mark, isRow }: { room: Room; mark: OutlineMark; isRow: boolean }) {
  const request = useEntry(room.windows, mark.seq) as EntryOf<'request'> | undefined
  if (request === undefined) return null
  const { tree, whole } = room.model
  const called = agentsAround(tree.at(request.step))
  const asked = called.length === 0 ? request : { ...request, agents: [whole.marks[0]?.note ?? 'run', ...called] }
  return <OpenRequest runId={room.id} request={asked} isRow={isRow} />
}
