/** The events of Anthropic's messages that make up most of a stream. All others go through the schema. */
import type { AnthropicEvent } from './anthropic-schema.ts'
import { isNumber, isObject } from './read-json.ts'

export function isUsualEvent(event: unknown): event is AnthropicEvent {
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

const deltaOf = (event: unknown) => (event as { delta?: Record<string, unknown> } | undefined)?.delta
export const textOf = (event: unknown) => deltaOf(event)?.['text']
export const thinkingOf = (event: unknown) => deltaOf(event)?.['thinking']
export const jsonOf = (event: unknown) => deltaOf(event)?.['partial_json']
