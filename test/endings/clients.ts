/** One client of each protocol: it begins a run, and says in one word how its answer ended. */
import { connectSocket, runInput, type SocketClient } from '../support/socket.ts'
import { framesOf } from '../support/server.ts'

export const protocols = ['text', 'UI', 'OpenAI', 'Responses', 'Messages', 'AG-UI', 'Socket.IO'] as const
export type Protocol = (typeof protocols)[number]

export interface Client {
  run: string
  stop(): Promise<unknown>
  leave(): void
  /** How the answer ended. Of one that the client left: undefined. */
  end: Promise<string | undefined>
}

const messages = [{ id: 'u', role: 'user', content: 'Hi' }]

export async function begin(protocol: Protocol, url: string, agent: string): Promise<Client> {
  const thread = crypto.randomUUID()
  if (protocol === 'Socket.IO') return beginSocket(url, agent, thread)
  const left = new AbortController()
  const [path, body, headers] = requestOf(protocol, agent, thread)
  const response = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: left.signal,
  })
  if (!response.ok) throw new Error(`${protocol} ${agent}: ${response.status} ${await response.text()}`)
  const run = response.headers.get('x-millrace-run-id')!
  return {
    run,
    stop: () => fetch(`${url}/api/runs/${run}/stop`, { method: 'POST' }),
    leave: () => left.abort(),
    end: readAll(response).then(({ text, isWhole }) =>
      left.signal.aborted ? undefined : endOf(protocol, text, isWhole),
    ),
  }
}

function requestOf(protocol: Protocol, agent: string, thread: string): [string, object, Record<string, string>] {
  const chat = { agentId: agent, id: thread, messages }
  switch (protocol) {
    case 'text':
      return ['/api/chat', chat, { accept: 'text/plain' }]
    case 'OpenAI':
      return ['/v1/chat/completions', { model: agent, messages: [{ role: 'user', content: 'Hi' }], stream: true }, {}]
    case 'Responses':
      return ['/v1/responses', { model: agent, input: 'Hi', stream: true }, {}]
    case 'Messages': {
      const body = { model: agent, max_tokens: 1000, messages: [{ role: 'user', content: 'Hi' }], stream: true }
      return ['/v1/messages', body, {}]
    }
    case 'AG-UI':
      return [`/ag-ui/${agent}`, runInput({ threadId: thread, runId: thread, messages }), {}]
    default:
      return ['/api/chat', chat, {}]
  }
}

async function readAll(response: Response): Promise<{ text: string; isWhole: boolean }> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const piece of response.body!) text += decoder.decode(piece, { stream: true })
    return { text, isWhole: true }
  } catch {
    return { text, isWhole: false }
  }
}

type Frame = Record<string, unknown> & { type?: string }

function endOf(protocol: Protocol, text: string, isWhole: boolean): string {
  if (protocol === 'text') return isWhole ? 'end of the body' : 'connection breaks'
  const frames = framesOf(text.slice(0, text.lastIndexOf('\n\n') + 2))
  const isDone = frames.at(-1) === 'done'
  const all = frames.filter((frame): frame is Frame => frame !== 'done')
  const terminal = all.filter((frame) => isTerminal(protocol, frame))
  if (terminal.length > 1 || (all.indexOf(terminal[0]!) < all.length - 1 && terminal.length > 0))
    return `${terminal.length} terminal frames, ${all.length - 1 - all.indexOf(terminal[0]!)} behind the first`
  if (protocol === 'AG-UI') return isWhole ? agUiEnd(all.at(-1)) : 'connection breaks'
  if (protocol === 'Messages') return isWhole && terminal.length > 0 ? messagesEnd(all) : 'connection breaks'
  if (!isDone || !isWhole) return 'connection breaks'
  if (protocol === 'Responses') return responsesEnd(terminal[0])
  return protocol === 'OpenAI' ? openAiEnd(terminal[0]) : uiEnd(terminal[0])
}

function isTerminal(protocol: Protocol, frame: Frame): boolean {
  const { type = '' } = frame
  if (protocol === 'UI') return ['finish', 'abort', 'error'].includes(type)
  if (protocol === 'AG-UI') return ['RUN_FINISHED', 'RUN_ERROR'].includes(type)
  if (protocol === 'Messages') return type === 'message_stop' || type === 'error'
  if (protocol === 'Responses') return /^response\.(?:completed|incomplete|failed)$/u.test(type)
  const [choice] = (frame['choices'] ?? []) as { finish_reason: string | null }[]
  return 'error' in frame || (choice?.finish_reason ?? null) !== null
}

function openAiEnd(frame: Frame | undefined): string {
  const { error, millrace, choices } = (frame ?? {}) as {
    error?: { code: string }
    millrace?: { requests?: unknown[] }
    choices?: { finish_reason: string }[]
  }
  if (error !== undefined) return `error \`${error.code}\``
  return `\`${choices?.[0]?.finish_reason}\`${millrace?.requests === undefined ? '' : ' + requests'}`
}

/** The status, and why it is not `completed`. */
function responsesEnd(frame: Frame | undefined): string {
  const {
    status,
    error,
    incomplete_details: cut,
  } = (frame?.['response'] ?? {}) as {
    status?: string
    error?: { code: string } | null
    incomplete_details?: { reason: string } | null
  }
  const why = error?.code ?? cut?.reason
  return why === undefined ? (status ?? 'nothing') : `${status} \`${why}\``
}

function messagesEnd(frames: readonly Frame[]): string {
  const { error } = frames.at(-1) as { error?: { type: string } }
  if (error !== undefined) return `error \`${error.type}\``
  const { delta } = frames.at(-2) as { delta?: { stop_reason: string } }
  return `\`${delta?.stop_reason}\``
}

function uiEnd(frame: Frame | undefined): string {
  if (frame?.type === 'finish') return `finish \`${String(frame['finishReason'])}\``
  return frame?.type ?? 'nothing'
}

export function agUiEnd(event: Frame | undefined): string {
  if (event?.type === 'RUN_ERROR') return `RUN_ERROR \`${String(event['code'])}\``
  if (event?.type !== 'RUN_FINISHED') return `no end after ${event?.type}`
  const { type = 'success', pendingToolCallIds } = (event['outcome'] ?? {}) as {
    type?: string
    pendingToolCallIds?: []
  }
  return pendingToolCallIds === undefined ? type : `${type} + pending calls`
}

async function beginSocket(url: string, agent: string, thread: string): Promise<Client> {
  const client: SocketClient = await connectSocket(url)
  const ack = await client.run({ threadId: thread, runId: thread, messages, forwardedProps: { agent } })
  if (!ack.ok) throw new Error(`Socket.IO ${agent}: ${JSON.stringify(ack)}`)
  const lost = new Promise<string>((resolve) => client.socket.on('disconnect', () => resolve('connection breaks')))
  let isLeft = false
  return {
    run: ack['millraceRunId'] as string,
    stop: () => client.send('abort_run', { runId: thread }),
    leave() {
      isLeft = true
      client.close()
    },
    end: Promise.race([client.ended(thread).then((events) => agUiEnd(events.at(-1) as unknown as Frame)), lost]).then(
      (end) => (isLeft ? undefined : end),
    ),
  }
}
