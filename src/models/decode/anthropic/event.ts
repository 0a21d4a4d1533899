/** The events of Anthropic's messages that make up most of a stream. All others go through the schema. */
import { textAt } from '../json-places.ts'
import { isNumber, isObject, type Checked } from '../read-json.ts'
import { anthropicSchema, type AnthropicEvent } from './event-schema.ts'

export function checkEvent(event: unknown): Checked<AnthropicEvent> {
  return isUsualEvent(event) ? { success: true, data: event } : anthropicSchema().safeParse(event)
}

function isUsualEvent(event: unknown): event is AnthropicEvent {
  if (!isObject(event)) return false
  switch (event['type']) {
    case 'content_block_delta':
      return isNumber(event['index']) && isUsualDelta(event['delta'])
    case 'content_block_stop':
      return isNumber(event['index'])
    case 'message_stop':
    case 'ping':
      return true
    default:
      return false
  }
}

function isUsualDelta(delta: unknown): boolean {
  if (!isObject(delta)) return false
  switch (delta['type']) {
    case 'text_delta':
      return typeof delta['text'] === 'string'
    case 'thinking_delta':
      return typeof delta['thinking'] === 'string'
    case 'input_json_delta':
      return typeof delta['partial_json'] === 'string'
    case 'signature_delta':
      return typeof delta['signature'] === 'string'
    default:
      return false
  }
}

export const textPlaces = textAt('delta.text')
export const thinkingPlaces = textAt('delta.thinking')
export const jsonPlaces = textAt('delta.partial_json')
