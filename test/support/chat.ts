/** The AI SDK's own client, with its own transport, against a server. */
import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, isToolUIPart, type ChatInit, type UIMessage } from 'ai'

export interface ServerChat {
  chat: Chat<UIMessage>
  errors: Error[]
  /** Ids of the runs that answered its requests, in order; '' when a request had none. */
  runs: string[]
}

export function createChat(
  url: string,
  {
    agentId = 'a',
    body = {},
    headers = {},
    ...init
  }: { agentId?: string; body?: object; headers?: Record<string, string> } & Partial<ChatInit<UIMessage>> = {},
): ServerChat {
  const errors: Error[] = []
  const runs: string[] = []
  const transport = new DefaultChatTransport({
    api: `${url}/api/chat`,
    headers,
    body: { agentId, ...body },
    fetch: async (input, request) => {
      const response = await fetch(input, request)
      runs.push(response.headers.get('x-millrace-run-id') ?? '')
      return response
    },
  })
  const chat = new Chat<UIMessage>({ transport, onError: (error) => void errors.push(error), ...init })
  return { chat, errors, runs }
}

/** A message as a line: `user: Hi`, `assistant: [add output-available] It is 3.` */
export function lines(messages: readonly UIMessage[]): string[] {
  return messages.map(({ role, parts }) => {
    const words = parts.flatMap((part) => {
      if (part.type === 'text') return [part.text]
      return isToolUIPart(part) ? [`[${part.type.replace(/^tool-/u, '')} ${part.state}]`] : []
    })
    return `${role}: ${words.join(' ')}`
  })
}

/** What a page keeps over a reload: JSON. */
export function stored(messages: readonly UIMessage[]): UIMessage[] {
  return JSON.parse(JSON.stringify(messages)) as UIMessage[]
}
