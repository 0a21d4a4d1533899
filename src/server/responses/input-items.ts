/** The items of a response's request, as `GET /v1/responses/:id/input_items` lists them. */
import { ownValue } from '../../part/own-value.ts'
import { readInput } from '../../fold/read-view.ts'
import { messagesOf, splitInstructions, type FileContent, type Message, type TextContent } from '../../part/message.ts'
import type { Store } from '../../part/log.ts'

type Item = { id: string; type: string; [field: string]: unknown }

/** In the order of the request. The ids are not those that the client has sent. */
export async function readInputItems({ log }: Store, run: string): Promise<Item[]> {
  const { rest } = splitInstructions(messagesOf(await readInput(log, run)))
  return rest
    .flatMap(itemsOf)
    .map((item, i) => ({ id: `${ownValue(prefixes, String(item['type'])) ?? 'msg'}_${run}_in${i}`, ...item }) as Item)
}

const prefixes: Readonly<Record<string, string>> = { function_call: 'fc', function_call_output: 'fco' }

function itemsOf(message: Message): Record<string, unknown>[] {
  switch (message.role) {
    case 'system':
      return [words('system', 'input_text', message.content)]
    case 'user': {
      const parts =
        typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content
      return [{ type: 'message', role: 'user', status: 'completed', content: parts.map(toPart) }]
    }
    case 'tool':
      return message.content.map(({ toolCallId, output }) => ({
        type: 'function_call_output',
        call_id: toolCallId,
        status: 'completed',
        output: 'value' in output && typeof output.value === 'string' ? output.value : JSON.stringify(output),
      }))
    case 'assistant': {
      const parts =
        typeof message.content === 'string' ? [{ type: 'text' as const, text: message.content }] : message.content
      return parts.flatMap((part): Record<string, unknown>[] => {
        if (part.type === 'text') return [words('assistant', 'output_text', part.text)]
        if (part.type !== 'tool-call') return []
        const { toolCallId, toolName, input } = part
        const json = typeof input === 'string' ? input : JSON.stringify(input)
        return [{ type: 'function_call', call_id: toolCallId, name: toolName, arguments: json, status: 'completed' }]
      })
    }
  }
}

function words(role: string, type: string, text: string) {
  const said = { type, text, ...(type === 'output_text' && { annotations: [], logprobs: [] }) }
  return { type: 'message', role, status: 'completed', content: [said] }
}

function toPart(part: TextContent | FileContent): Record<string, unknown> {
  if (part.type === 'text') return { type: 'input_text', text: part.text }
  const { mediaType, data, filename } = part
  const url = /^(?:https?|data):/iu.test(data) ? data : `data:${mediaType};base64,${data}`
  if (mediaType.startsWith('image/')) return { type: 'input_image', image_url: url, detail: 'auto' }
  return { type: 'input_file', ...(filename !== undefined && { filename }), file_data: url }
}

export interface ItemPage {
  limit: number
  /** The id of the item before the page. */
  after: string | undefined
  order: 'asc' | 'desc'
}

/** Undefined if `after` is none of the items. */
export function pageOf(items: readonly Item[], { limit, after, order }: ItemPage): object | undefined {
  const all = order === 'asc' ? items : items.toReversed()
  const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && from === 0) return undefined
  const data = all.slice(from, from + limit)
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + limit < all.length,
  }
}
