/** The official Socket.IO client against a server. All events that it gets are kept; a test waits for the one it wants. */
import { HttpAgent } from '@ag-ui/client'
import { HttpAgent as OldHttpAgent } from 'ag-ui-client-old'
import { io, type ManagerOptions, type Socket, type SocketOptions } from 'socket.io-client'
import { onTestFinished } from 'vitest'
import { agUiRuns } from '../ag-ui-judge.ts'
import type { AgUiEvent } from '../../src/wire/ag-ui/ag-ui-event.ts'

export const transports = ['websocket', 'polling'] as const
export type TransportName = (typeof transports)[number]

export interface Sent {
  event: AgUiEvent & Record<string, unknown>
  /** What was sent with it. */
  with: { runId: string; threadId: string; seq: number; index?: number }
}

export interface Ack {
  ok: boolean
  error?: { message: string; code: string; retryAfter?: number }
  [key: string]: unknown
}

export interface SocketClient {
  socket: Socket
  sent: Sent[]
  /** How many events had come when a message was acknowledged. */
  sentBefore: Map<Ack, number>
  /** The last `agents`. */
  agents: unknown[]
  /** Resolves with the acknowledgement. */
  send(type: string, data: unknown): Promise<Ack>
  run(input: Record<string, unknown>): Promise<Ack>
  /** The first event of a run, or of any, that satisfies the condition, past or to come. */
  until(matches: (sent: Sent) => boolean): Promise<Sent>
  /** The events of a run up to its terminal one. */
  ended(runId: string): Promise<AgUiEvent[]>
  /** The events of a run so far. */
  of(runId: string): AgUiEvent[]
  close(): void
}

export async function connectSocket(
  url: string,
  transport: TransportName = 'websocket',
  options: Partial<ManagerOptions & SocketOptions> = {},
): Promise<SocketClient> {
  const socket = io(url, { transports: [transport], forceNew: true, reconnection: false, ...options })
  onTestFinished(() => void socket.close())
  const sent: Sent[] = []
  const agents: unknown[] = []
  let lookAgain = Promise.withResolvers<void>()
  socket.on('event', (event: Sent['event'], sentWith: Sent['with']) => {
    sent.push({ event, with: sentWith })
    const { resolve } = lookAgain
    lookAgain = Promise.withResolvers()
    resolve()
  })
  const told = new Promise<void>((resolve, reject) => {
    socket.on('agents', (message) => {
      agents.push(message)
      resolve()
    })
    socket.on('connect_error', reject)
  })
  await told

  async function until(matches: (sent: Sent) => boolean): Promise<Sent> {
    for (let from = 0; ;) {
      for (; from < sent.length; from++) if (matches(sent[from]!)) return sent[from]!
      await lookAgain.promise
    }
  }
  const sentBefore = new Map<Ack, number>()
  const send = (type: string, data: unknown) =>
    new Promise<Ack>((resolve) => {
      socket.emit('message', { type, data }, (ack: Ack) => {
        sentBefore.set(ack, sent.length)
        resolve(ack)
      })
    })
  const of = (runId: string) => sent.filter((each) => each.with.runId === runId).map(({ event }) => event)
  return {
    socket,
    sent,
    sentBefore,
    agents,
    send,
    run: (input) => send('run_agent', runInput(input)),
    until,
    async ended(runId) {
      await until((each) => each.with.runId === runId && isTerminal(each.event))
      return of(runId)
    },
    of,
    close: () => void socket.close(),
  }
}

export function isTerminal({ type }: { type: string }): boolean {
  return type === 'RUN_FINISHED' || type === 'RUN_ERROR'
}

/** A whole `RunAgentInput`. */
export function runInput(given: Record<string, unknown>): Record<string, unknown> {
  return {
    threadId: 't',
    runId: 'r',
    messages: [user('Hi')],
    tools: [],
    context: [],
    state: null,
    forwardedProps: {},
    protocolVersion: '1.0',
    ...given,
  }
}

export function user(content: string, id = `u-${content}`): object {
  return { id, role: 'user', content }
}

export const pick = { name: 'pick', description: 'Asks the user', parameters: { type: 'object', properties: {} } }

/** The text of all text messages. */
export function textOf(events: readonly AgUiEvent[]): string {
  return events.map((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '')).join('')
}

/** The events are what the official clients accept: the current one, or the one that older applications use. */
export async function judged(events: readonly AgUiEvent[], old = false): Promise<void> {
  for (const run of agUiRuns(events)) {
    const body = run.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    const fetch = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    const config = { url: 'http://localhost/', fetch }
    await (old ? new OldHttpAgent(config) : new HttpAgent(config)).runAgent()
  }
}
