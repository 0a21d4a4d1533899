/** A message as one JSON, for `stream: false`: what the events of the stream add up to. */
import { parseJson } from '../../part/json.ts'
import { ownValue } from '../../part/own-value.ts'
import { objects } from '../framing/objects.ts'
import { createWire, type Sink } from '../wire.ts'
import type { MessagesEvent } from './message-blocks.ts'
import { createMessagesAnswer, type MessagesOptions, type MessageUsage } from './messages-answer.ts'

export interface MessageObject {
  id: string
  type: 'message'
  role: 'assistant'
  model: string
  content: Block[]
  stop_reason: string | null
  stop_sequence: null
  usage: MessageUsage
}

type Block = { type: string; [field: string]: unknown }

export type MessageResult = { message: MessageObject } | { error: { type: string; message: string } }

/** Its one event comes at the end. */
export const messagesJsonWire = createWire<MessageResult, MessagesOptions, MessageResult[]>({
  name: 'messages-json',
  project: (sink, context, options) => createMessagesAnswer(addingUp(sink), context, options),
  framing: objects(),
})

function addingUp(sink: Sink<MessageResult>): Sink<MessagesEvent> {
  let message: MessageObject | undefined
  let json = ''
  const send = (event: MessagesEvent): void => {
    switch (event.type) {
      case 'message_start':
        message = event['message'] as MessageObject
        return
      case 'content_block_start':
        json = ''
        message?.content.push({ ...(event['content_block'] as Block) })
        return
      case 'content_block_delta': {
        const { type, ...delta } = event['delta'] as Record<string, string>
        const block = message?.content.at(-1)
        if (block === undefined) return
        if (type === 'input_json_delta') json += delta['partial_json']
        else
          for (const [key, text] of Object.entries(delta))
            Object.assign(block, { [key]: `${(ownValue(block, key) as string | undefined) ?? ''}${text}` })
        return
      }
      case 'content_block_stop': {
        const block = message?.content.at(-1)
        if (block !== undefined && json !== '') block['input'] = parseJson(json)
        json = ''
        return
      }
      case 'message_delta':
        if (message === undefined) return
        message = { ...message, ...(event['delta'] as object), usage: event['usage'] as MessageUsage }
        return
      case 'message_stop':
        if (message !== undefined) sink.send({ message })
        return
      case 'error':
        sink.send({ error: event['error'] as { type: string; message: string } })
    }
  }
  return {
    // What the client has is a part of the whole.
    muted: false,
    send,
    prepare:
      (make) =>
      (text, number = 0) =>
        send(make(text, number)),
    end: () => sink.end(),
  }
}
