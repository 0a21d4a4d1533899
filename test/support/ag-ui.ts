/** AG-UI's own client against a test server: what it made of the stream, and the stream itself. */
import { HttpAgent, type Message, type RunAgentInput, type Tool } from '@ag-ui/client'
import { HttpAgent as OldHttpAgent } from 'ag-ui-client-old'
import { expect } from 'vitest'
import type { AgUiEvent, AgUiEventOf } from '../../src/wire/ag-ui/ag-ui-event.ts'
import { agUiRuns } from '../ag-ui-judge.ts'
import { framesOf } from './server.ts'

export type RunParameters = Partial<Pick<RunAgentInput, 'runId' | 'tools' | 'context' | 'forwardedProps' | 'resume'>>

export interface AgUiAnswer {
  /** The events of the body, judged. */
  events: AgUiEvent[]
  types: string[]
  /** What the client was told of them. */
  seen: AgUiEvent[]
  /** The last one. */
  end: AgUiEventOf<'RUN_FINISHED'> | AgUiEventOf<'RUN_ERROR'>
  response: Response
  /** Our id of the run. */
  run: string
}

/** A client with a thread. `onEvent` is called when the client has read an event. */
export function createAgUiClient(
  url: string,
  {
    threadId = crypto.randomUUID() as string,
    old = false,
    messages = [] as Message[],
    tools = [] as Tool[],
    state = undefined as unknown,
    headers = {} as Record<string, string>,
    agent: name = 'a',
  } = {},
) {
  let body = ''
  let response: Response | undefined
  const keep = async (address: string, init: RequestInit) => {
    response = await fetch(address, init)
    const [mine, its] = response.body!.tee()
    body = ''
    void (async () => {
      const decoder = new TextDecoder()
      for await (const piece of mine) body += decoder.decode(piece, { stream: true })
    })().catch(() => undefined)
    return new Response(its, response)
  }
  const config = {
    url: `${url}/ag-ui/${name}`,
    threadId,
    initialMessages: messages,
    initialState: state,
    headers,
    fetch: keep,
  }
  const agent = old ? (new OldHttpAgent(config as never) as unknown as HttpAgent) : new HttpAgent(config)
  let isJudged = true

  return {
    agent,
    threadId,
    say(text: string) {
      agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text })
    },
    answer(toolCallId: string, content: string, error?: string) {
      const message = { id: crypto.randomUUID(), role: 'tool' as const, toolCallId, content }
      agent.addMessage(error === undefined ? message : { ...message, error })
    },
    /** The stream may be cut off. */
    leaves() {
      isJudged = false
    },
    /** Runs the agent, and judges the stream. Rejects if the client's verifier or the server refuses. */
    async run(
      parameters: RunParameters = {},
      onEvent: (event: AgUiEvent) => void = () => undefined,
    ): Promise<AgUiAnswer> {
      const seen: AgUiEvent[] = []
      await agent.runAgent({ tools, ...parameters }, {
        onEvent({ event }) {
          seen.push(event as unknown as AgUiEvent)
          onEvent(event as unknown as AgUiEvent)
        },
      } as Parameters<HttpAgent['runAgent']>[1])
      const events = framesOf(body) as unknown as AgUiEvent[]
      if (isJudged) {
        // The client does not notice a stream that is cut off.
        expect(body.endsWith('\n\n')).toBe(true)
        expect(agUiRuns(events)).toHaveLength(1)
        expect(seen.map(({ type }) => type)).toEqual(events.map(({ type }) => type))
        checkIds(events, threadId)
      }
      return {
        events,
        types: events.map(({ type }) => type),
        seen,
        end: events.at(-1) as AgUiAnswer['end'],
        response: response!,
        run: response!.headers.get('x-millrace-run-id') ?? '',
      }
    },
  }
}

/** What the verifier does not check: the ids of a run, no null, and a result only for a call that has ended. */
export function checkIds(events: readonly AgUiEvent[], threadId: string): void {
  const started = events[0] as AgUiEventOf<'RUN_STARTED'>
  const end = events.at(-1)!
  expect(started).toMatchObject({ type: 'RUN_STARTED', threadId, protocolVersion: '1.0' })
  if (end.type === 'RUN_FINISHED') expect(end).toMatchObject({ threadId, runId: started.runId })
  expect(
    JSON.stringify(events.map(({ type, ...fields }) => Object.values(fields).includes(null as never) && type)),
  ).not.toContain('"')
  const ids = events.flatMap((event) => (event.type === 'TEXT_MESSAGE_START' ? [event.messageId] : []))
  expect(new Set(ids).size).toBe(ids.length)
  const open = new Set<string>()
  for (const event of events) {
    if (event.type === 'TOOL_CALL_START') open.add(event.toolCallId)
    if (event.type === 'TOOL_CALL_END') open.delete(event.toolCallId)
    if (event.type === 'TOOL_CALL_RESULT') expect(open.has(event.toolCallId)).toBe(false)
  }
}

/** The text of the messages of the assistant. */
export function textsOf(messages: readonly Message[]): string[] {
  return messages.flatMap(({ role, content }) => (role === 'assistant' && typeof content === 'string' ? [content] : []))
}

export function only<T extends AgUiEvent['type']>(events: readonly AgUiEvent[], type: T): AgUiEventOf<T>[] {
  return events.filter((event): event is AgUiEventOf<T> => event.type === type)
}
