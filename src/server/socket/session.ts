/**
 * One connected client: the runs that it has started or watches. Runs belong to the server, so nothing but cursors ends with the
 * connection; the policies of the runs say what happens when nobody reads them any more.
 */
import type { Socket } from 'socket.io'
import { MillraceError, toMillraceError } from '../../part/error.ts'
import type { Place } from '../../part/limits.ts'
import type { DisconnectPolicy } from '../../pipeline/pipeline.ts'
import type { AgUiEvent, AgUiOptions } from '../../wire/ag-ui/ag-ui-event.ts'
import type { Admission } from '../http/admission.ts'
import { createDrain } from './drain.ts'
import { emitEvents } from './emit-events.ts'
import { followRun, type FollowedRun } from './followed-run.ts'
import { createPassedRequests, type PassedRequests } from './passed-requests.ts'
import type { Position } from './numbered-wire.ts'
import type { SessionContext } from './session-context.ts'

/** The most runs that a client may start or watch at the same time. */
export const mostRuns = 64
/** Runs that are over, and of whose calls a late answer is told what became of them. */
const mostOver = 64

export interface Follow {
  runId: string
  /** The client's id of the run. */
  label: string
  threadId: string
  after?: Position
  isNew: boolean
  answered?: ReadonlySet<string>
  options: Partial<AgUiOptions>
  policy: DisconnectPolicy
  /** Its place among the streams that may be open. */
  place: Place | undefined
}

export interface Session {
  /** Where the connection comes from. */
  readonly address: string
  /** Runs that are being started, by the client's id. Resolves with ours. */
  readonly starting: Map<string, Promise<string>>
  /** The runs that it follows, and the last ones that are over. */
  readonly followed: ReadonlyMap<string, FollowedRun>
  /** How many runs are followed or about to be. */
  readonly active: number
  readonly requests: PassedRequests
  /** Follows a run, and no longer from where it was followed before. `begin` begins to send. */
  follow(how: Follow): Promise<FollowedRun>
  /** Notes a message that will make it follow a run. Returns the same promise. */
  track<T>(message: Promise<T>): Promise<T>
  /** Resolves when all runs of the messages before are followed, and all that was stored of them then is known. */
  caughtUp(): Promise<void>
  emit(event: AgUiEvent, sentWith: object): void
  leave(): void
}

export function createSession(context: SessionContext, socket: Socket): Session {
  const drain = createDrain(socket.conn)
  const requests = createPassedRequests(context, socket)
  const followed = new Map<string, FollowedRun>()
  const starting = new Map<string, Promise<string>>()
  /** The last request to follow each run: an earlier one that is still being opened gives way. */
  const wanted = new Map<string, object>()
  const opening = new Set<Promise<unknown>>()
  let active = 0
  let hasLeft = false

  function forgetOver(): void {
    let over = 0
    for (const { isOver } of followed.values()) if (isOver) over++
    for (const [id, { isOver }] of followed) {
      if (over <= mostOver) break
      if (isOver && followed.delete(id)) over--
    }
  }

  return {
    address: socket.handshake.address,
    starting,
    followed,
    requests,
    get active() {
      return active + starting.size
    },
    emit: (event, sentWith) => void socket.emit('event', event, sentWith),

    async follow({ runId, place, ...how }) {
      const me = {}
      wanted.set(runId, me)
      followed.get(runId)?.leave()
      active++
      const onEnd = () => {
        active--
        place?.leave()
        if (wanted.get(runId) === me) wanted.delete(runId)
      }
      let run: FollowedRun
      try {
        run = await followRun(context, { runId, ...how, drain, emit: (events) => emitEvents(socket, events), onEnd })
      } catch (error) {
        onEnd()
        throw error
      }
      if (hasLeft || wanted.get(runId) !== me) {
        run.leave()
        return run
      }
      followed.delete(runId)
      followed.set(runId, run)
      forgetOver()
      return run
    },

    track(message) {
      opening.add(message)
      const forget = () => void opening.delete(message)
      message.then(forget, forget)
      return message
    },

    async caughtUp() {
      await Promise.allSettled(opening)
      await Promise.all([...followed.values()].map((run) => run.caughtUp))
    },

    leave() {
      hasLeft = true
      requests.leave()
      for (const run of followed.values()) run.leave()
      followed.clear()
    },
  }
}

/** A place for one more followed run. Throws if there are too many. */
export async function openPlace(admission: Admission | undefined, address: string): Promise<Place | undefined> {
  const place = await admission?.stream(address)
  if (place instanceof Error) throw place
  return place
}

/** What a client is told of an error. */
export function toldError(
  error: unknown,
  onError: (error: unknown) => void,
): { message: string; code: string; retryAfter?: number } {
  if (!(error instanceof MillraceError)) onError(error)
  const { code, message, retryAfter } = toMillraceError(error, 'internal')
  return { message, code, ...(retryAfter !== undefined && { retryAfter }) }
}
