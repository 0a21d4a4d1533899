/** What each cell of the matrix must be, and the page that shows it. */
import { protocols, type Protocol } from './clients.ts'
import { states, type State } from './scene.ts'

export const events = [
  'stop',
  'disconnect',
  'provider error',
  'tool error',
  'timeout',
  'budget',
  'kill -9 and restart',
] as const
export type Event = (typeof events)[number]

/** `end`: what the client is sent last. `outcome`: the status of the run afterwards. */
export interface Cell {
  end: string
  outcome: string
}
/** A cell that cannot exist. */
export interface Impossible {
  why: string
}

const cut = 'connection breaks'
const codes = { 'provider error': 'model-failed', timeout: 'timed-out', budget: 'budget-exceeded' } as const

export function expected(state: State, event: Event, protocol: Protocol): Cell | Impossible {
  const waits = state === 'client tool pending' || state === 'approval pending'
  return waits ? ofWaiting(state, event, protocol) : ofRunning(state, event, protocol)
}

function ofRunning(state: State, event: Event, protocol: Protocol): Cell | Impossible {
  switch (event) {
    case 'stop':
      return {
        end: {
          text: cut,
          UI: 'abort',
          OpenAI: 'error `aborted`',
          Responses: 'incomplete `cancelled`',
          Messages: 'error `aborted`',
          'AG-UI': 'cancelled',
          'Socket.IO': 'cancelled',
        }[protocol],
        outcome: 'aborted',
      }
    case 'disconnect':
      return { end: 'left', outcome: 'aborted' }
    case 'provider error':
      if (state === 'server tool') return { why: 'no model is called' }
      return { end: failure(protocol, codes[event]), outcome: 'failed' }
    case 'timeout':
      return { end: failure(protocol, codes[event]), outcome: 'timed-out' }
    case 'budget':
      return { end: failure(protocol, codes[event]), outcome: 'budget-exceeded' }
    case 'tool error':
      if (state !== 'server tool') return { why: 'no tool is running' }
      return { end: success(protocol), outcome: 'completed' }
    case 'kill -9 and restart':
      return { end: cut, outcome: 'interrupted' }
  }
}

/** Over HTTP the answer ends when the run begins to wait, so that what happens later changes the run alone. */
function ofWaiting(state: State, event: Event, protocol: Protocol): Cell | Impossible {
  const asksClient = state === 'client tool pending'
  if (asksClient && ['OpenAI', 'Responses', 'Messages'].includes(protocol))
    return { why: 'handed over: the run has completed' }
  // Socket.IO keeps the stream of a run that waits for its client alone.
  const isLive = asksClient && protocol === 'Socket.IO'
  const end = {
    text: 'end of the body',
    UI: 'finish `tool-calls`',
    OpenAI: '`stop` + requests',
    Responses: 'completed',
    Messages: '`end_turn`',
    'AG-UI': asksClient ? 'success + pending calls' : 'interrupt',
    'Socket.IO': 'interrupt',
  }[protocol]
  switch (event) {
    case 'stop':
      return { end: isLive ? 'cancelled' : end, outcome: 'aborted' }
    case 'disconnect':
      if (protocol !== 'Socket.IO') return { why: 'the answer has ended' }
      return { end: isLive ? 'left' : end, outcome: 'suspended' }
    case 'provider error':
      return { why: 'no model is called' }
    case 'budget':
      return { why: 'waiting costs nothing' }
    case 'tool error':
    case 'timeout':
      return { end: isLive ? 'success' : end, outcome: 'completed' }
    case 'kill -9 and restart':
      return { end: isLive ? cut : end, outcome: 'suspended' }
  }
}

function failure(protocol: Protocol, code: string): string {
  return {
    text: cut,
    UI: 'error',
    OpenAI: `error \`${code}\``,
    Responses: code === 'model-failed' ? 'failed `server_error`' : `incomplete \`${code.replace('-', '_')}\``,
    Messages: `error \`${code === 'model-failed' ? 'run_failed' : code.replace('-', '_')}\``,
    'AG-UI': `RUN_ERROR \`${code}\``,
    'Socket.IO': `RUN_ERROR \`${code}\``,
  }[protocol]
}

function success(protocol: Protocol): string {
  return {
    text: 'end of the body',
    UI: 'finish `stop`',
    OpenAI: '`stop`',
    Responses: 'completed',
    Messages: '`end_turn`',
    'AG-UI': 'success',
    'Socket.IO': 'success',
  }[protocol]
}

const intro = `# How answers end

Every answer ends with exactly one terminal frame, and every run with one outcome. A test drives each cell of this page through a real client and writes it: \`UPDATE_GOLDEN=1 npx vitest run test/endings\`.

A cell is the last thing that the client receives when the event happens in that state of the run; the last column is the status of the run afterwards. Rows that cannot exist are left out: no tool fails while none runs, no provider fails while none is called, and a suspended run spends neither time nor budget.

- **text** has no frames: an answer that is not complete breaks the connection, so the client sees an incomplete transfer.
- **UI** is the stream of \`useChat\`; its frames and those of OpenAI and Responses are followed by \`[DONE]\`. AG-UI and Socket.IO end with \`RUN_FINISHED\` and the outcome named here, or with \`RUN_ERROR\`.
- Over HTTP an answer ends when the run is suspended; later events change only the run. Socket.IO keeps the stream open while only tools of its client are pending. A client tool over OpenAI, Responses and Messages is handed over: its run has completed.
- *timeout* of a suspended run is the deadline of its request: the call is closed, and the run continues.
- *budget* is \`seconds\`; *disconnect* is with \`onDisconnect: cancel\`. *left*: the client is gone and receives nothing. –: no answer is open. A *tool error* goes to the model, which answers.
- When the store fails, an answer ends with the error \`store-failed\`, with \`store-damaged\` if the data of the run are damaged, or with \`store-lost\` if Redis has lost entries that were read ([what to do](operations.md#health)). The run ends when the store works again: as \`failed\`, or as \`aborted\` if somebody had stopped it.

`

/** States in which an event has the same effect share a row. */
export function endingsPage(cellOf: (state: State, event: Event, protocol: Protocol) => Cell | Impossible): string {
  const rows = events.flatMap((event) => {
    const inStates = new Map<string, State[]>()
    for (const state of states) {
      const cells = protocols.map((protocol) => cellOf(state, event, protocol))
      const [outcome, ...others] = new Set(cells.flatMap((cell) => ('why' in cell ? [] : [cell.outcome])))
      if (others.length > 0) throw new Error(`${event} of ${state} has several outcomes`)
      if (outcome === undefined) continue
      const row = [...cells.map((cell) => ('why' in cell ? '–' : cell.end)), outcome].join(' | ')
      inStates.set(row, [...(inStates.get(row) ?? []), state])
    }
    return [...inStates].map(([row, all]) => `| ${event} | ${all.join(', ')} | ${row} |`)
  })
  const head = ['event', 'state', ...protocols, 'run']
  return `${intro}| ${head.join(' | ')} |\n|${head.map(() => '---|').join('')}\n${rows.join('\n')}\n`
}
