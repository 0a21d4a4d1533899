/** The official client of `ai` 7 behind a transport that answers with our bytes. */
import { Chat } from '@ai-sdk/react'
import { DefaultChatTransport, type ChatInit, type UIMessage } from 'ai'
import { uiWire } from '../src/wire/ui/ui.ts'

export interface Client {
  chat: Chat<UIMessage>
  errors: string[]
  /** Bodies that the client posted. */
  posted: { messages: UIMessage[] }[]
}

/** Each body answers one request, in order; a request beyond them fails. */
export function createClient(bodies: string[], init: Partial<ChatInit<UIMessage>> = {}): Client {
  const client = { errors: [] as string[], posted: [] as Client['posted'] }
  const left = [...bodies]
  const transport = new DefaultChatTransport({
    api: 'http://test/api/chat',
    fetch: async (_url, request) => {
      if (typeof request?.body === 'string') client.posted.push(JSON.parse(request.body))
      const body = left.shift()
      if (body === undefined) throw new Error('the client asked once too often')
      return new Response(body, { headers: { 'content-type': uiWire.contentType, ...uiWire.headers } })
    },
  })
  const chat = new Chat<UIMessage>({
    transport,
    onError: (error) => client.errors.push(error.message),
    ...init,
  })
  return { ...client, chat }
}

/** What a client shows after one message: the assistant's message, the state and the errors. */
export async function show(body: string) {
  const { chat, errors } = createClient([body])
  await chat.sendMessage({ text: 'Hi' })
  return { message: chat.lastMessage, status: chat.status, errors }
}
