/**
 * Socket.IO handles a whole network chunk at once, which may contain thousands of small messages. Here they wait in queues, and each turn of the
 * event loop takes a few. A connection with a long queue is paused.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server, Socket } from 'socket.io'

type EngineConnection = Socket['conn']

export interface SlicedInput {
  /** Forwards a polling client's request, and later its response, after which the client sends more: each when the queue is short. */
  handle(request: IncomingMessage, response: ServerResponse, next: () => void): void
}

/** Messages per turn: some milliseconds of work. */
const perTurn = 20
/** A longer message counts more: one, plus one for every `unit` characters. */
const unit = 16_384
/** A connection with a longer queue is paused. */
const most = 200
/** Messages of one polling request that are split off at once. */
const perPiece = 500
const separator = '\u001e'

interface PolledInput {
  line: TaskLine
  /** Called once the queue is short again. */
  onShort: (() => void)[]
}

/** Call it before the first connection. */
export function sliceInput({ engine }: Server): SlicedInput {
  const turns = createTurns({ room: perTurn })
  const inputs = new Map<string, PolledInput>()

  engine.on('connection', (conn: EngineConnection) => {
    const input: PolledInput = { line: turns.line(), onShort: [] }
    const { line, onShort } = input
    // Its `sid`, which TypeScript keeps private.
    const { id } = conn as unknown as { id: string }
    inputs.set(id, input)
    // The listeners of Socket.IO.
    const readers = takeListeners(conn, 'data')
    const closers = takeListeners(conn, 'close')

    function push(call: () => void, cost: number): void {
      line.push(() => {
        call()
        if (line.waiting <= most / 2) for (const next of onShort.splice(0)) next()
      }, cost)
    }

    conn.on('data', (data: string | Uint8Array) => {
      push(() => readers(data), 1 + Math.floor(data.length / unit))
      if (line.waiting > most) pause(conn, onShort)
    })
    // After the messages that were sent before.
    conn.on('close', (...why: unknown[]) => {
      inputs.delete(id)
      push(() => closers(...why), 0)
    })
    sliceRequests(conn, push)
  })

  function whenShort({ url = '' }: IncomingMessage, next: () => void): void {
    const sid = new URLSearchParams(url.split('?')[1]).get('sid')
    const input = sid === null ? undefined : inputs.get(sid)
    if (input === undefined || input.line.waiting <= most) next()
    else input.onShort.push(next)
  }

  return {
    handle(request, response, next) {
      const end = response.end.bind(response) as (...args: unknown[]) => void
      response.end = (...args: unknown[]) => {
        whenShort(request, () => end(...args))
        return response
      }
      whenShort(request, () => {
        if (!request.destroyed) next()
      })
    },
  }
}

/** Removes all listeners of an event. Returns a function that calls them. */
function takeListeners(conn: EngineConnection, event: string): (...args: unknown[]) => void {
  const listeners = conn.listeners(event) as ((...args: unknown[]) => void)[]
  conn.removeAllListeners(event)
  return (...args) => {
    for (const listener of listeners) listener.apply(conn, args)
  }
}

/** Pauses a WebSocket until the queue is short. A polling client waits for its response. */
function pause({ transport }: EngineConnection, onShort: (() => void)[]): void {
  const { socket } = transport as { socket?: { isPaused: boolean; pause(): void; resume(): void } }
  if (socket === undefined || socket.isPaused) return
  socket.pause()
  onShort.push(() => socket.resume())
}

/** Splits a polling request into pieces. Its response waits for the last one: only then the client may continue, or change to a WebSocket. */
function sliceRequests({ transport }: EngineConnection, push: (call: () => void, cost: number) => void): void {
  if (transport.name !== 'polling') return
  const polling = transport as unknown as { onData(data: unknown): void }
  const onData = polling.onData.bind(polling)
  polling.onData = (data) => {
    if (typeof data !== 'string') return onData(data)
    const take = (from: number) => {
      const end = endOfPiece(data, from)
      onData(data.slice(from, end))
      if (end < data.length) push(() => take(end + 1), most + 1)
    }
    take(0)
  }
}

function endOfPiece(data: string, from: number): number {
  let end = from - 1
  for (let i = 0; i < perPiece; i++) {
    end = data.indexOf(separator, end + 1)
    if (end < 0) return data.length
  }
  return end
}

/**
 * Handles the input of many connections, a little in each turn of the event loop: no connection delays the others, however much it sends at once.
 * Each queue keeps its order, and the queues take turns.
 */
interface TaskTurns {
  line(): TaskLine
}

/** The tasks of one connection. */
interface TaskLine {
  /** Runs the task at once if this turn has room and the queue is empty, otherwise in a later turn. `cost`: its share of a turn's room. */
  push(run: () => void, cost: number): void
  /** The cost of the queued tasks. */
  readonly waiting: number
}

interface TurnsOptions {
  /** The room of a turn. A task that costs more gets a turn of its own. */
  room: number
  /** Calls back in the next turn of the event loop. */
  later?: (next: () => void) => void
}

interface SlicedTask {
  run(): void
  cost: number
}

interface TaskQueue {
  tasks: SlicedTask[]
  /** The index of the next task. */
  next: number
  cost: number
}

export function createTurns({ room, later = (next) => void setImmediate(next) }: TurnsOptions): TaskTurns {
  /** The first one is next. */
  const busy = new Set<TaskQueue>()
  let left = room
  let isSet = false

  function arm(): void {
    if (isSet) return
    isSet = true
    later(turn)
  }

  function turn(): void {
    isSet = false
    left = room
    // First, because a task may throw.
    if (busy.size > 0) arm()
    while (left > 0) {
      const [line] = busy
      if (line === undefined) return
      busy.delete(line)
      const { run, cost } = line.tasks[line.next++]!
      line.cost -= cost
      left -= cost
      if (line.next < line.tasks.length) busy.add(line)
      else Object.assign(line, { tasks: [], next: 0 })
      run()
    }
  }

  return {
    line() {
      const line: TaskQueue = { tasks: [], next: 0, cost: 0 }
      return {
        push(run, cost) {
          arm()
          if (left > 0 && line.tasks.length === 0) {
            left -= cost
            return run()
          }
          line.tasks.push({ run, cost })
          line.cost += cost
          busy.add(line)
        },
        get waiting() {
          return line.cost
        },
      }
    },
  }
}
