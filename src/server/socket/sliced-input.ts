/**
 * Socket.IO handles all that a chunk of the network holds at once, which may be thousands of small messages. Here they wait in lines, of which
 * each turn of the event loop takes a few. A connection for which much waits is not read on.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server, Socket } from 'socket.io'

type Connection = Socket['conn']

export interface SlicedInput {
  /** Hands on a request of a client that polls and sends, and its answer, after which the client sends more: each when little waits. */
  handle(request: IncomingMessage, response: ServerResponse, next: () => void): void
}

/** Messages in a turn. What they begin takes some milliseconds. */
const perTurn = 20
/** A longer message counts for more: for one, and one for each so many characters. */
const unit = 16_384
/** When more than this waits, a connection is not read on. */
const most = 200
/** Messages of one request of a client that polls that are taken apart at once. */
const perPiece = 500
const separator = '\u001e'

interface Input {
  line: Line
  /** Called once the line is short again. */
  onShort: (() => void)[]
}

/** Call it before anybody connects. */
export function sliceInput({ engine }: Server): SlicedInput {
  const turns = createTurns({ room: perTurn })
  const inputs = new Map<string, Input>()

  engine.on('connection', (conn: Connection) => {
    const input: Input = { line: turns.line(), onShort: [] }
    const { line, onShort } = input
    // Its `sid`, which TypeScript keeps private.
    const { id } = conn as unknown as { id: string }
    inputs.set(id, input)
    // Those of Socket.IO.
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
    // Behind what was sent before.
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

/** Takes all listeners of an event off. Returns what calls them. */
function takeListeners(conn: Connection, event: string): (...args: unknown[]) => void {
  const listeners = conn.listeners(event) as ((...args: unknown[]) => void)[]
  conn.removeAllListeners(event)
  return (...args) => {
    for (const listener of listeners) listener.apply(conn, args)
  }
}

/** Reads no more of a WebSocket until the line is short. A client that polls waits for its answer. */
function pause({ transport }: Connection, onShort: (() => void)[]): void {
  const { socket } = transport as { socket?: { isPaused: boolean; pause(): void; resume(): void } }
  if (socket === undefined || socket.isPaused) return
  socket.pause()
  onShort.push(() => socket.resume())
}

/** Takes a request of a client that polls apart in pieces. Its answer waits for the last one: only then the client may go on, or change to a WebSocket. */
function sliceRequests({ transport }: Connection, push: (call: () => void, cost: number) => void): void {
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
 * What many connections have sent, a little of it in each turn of the event loop: nobody keeps the others waiting, however much they
 * send at once. Each line keeps its order, and the lines take turns.
 */
interface Turns {
  line(): Line
}

/** The tasks of one connection. */
interface Line {
  /** Runs the task at once if this turn has room and nothing waits before it, else in a later turn. `cost`: its share of a turn's room. */
  push(run: () => void, cost: number): void
  /** The cost of what waits. */
  readonly waiting: number
}

interface TurnsOptions {
  /** The room of a turn. What costs more has a turn for itself. */
  room: number
  /** Calls back in the next turn of the event loop. */
  later?: (next: () => void) => void
}

interface Task {
  run(): void
  cost: number
}

interface Waiting {
  tasks: Task[]
  /** Those before it are done. */
  next: number
  cost: number
}

export function createTurns({ room, later = (next) => void setImmediate(next) }: TurnsOptions): Turns {
  /** The first one is next. */
  const busy = new Set<Waiting>()
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
      const line: Waiting = { tasks: [], next: 0, cost: 0 }
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
