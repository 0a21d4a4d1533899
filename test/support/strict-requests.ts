/**
 * What model services check of a request before a model sees it, as pure functions: the order of messages, ids, that each tool call has its result
 * directly behind it, and that a signature goes back to the model that made it. The words of a fault are those of the service.
 */
import type { EndpointProtocol } from '../../src/models/providers.ts'

type Json = Record<string, unknown>

/** Whether this model has made this signature (a signed thought, an encrypted item). */
export type IsOwnSignature = (signature: string) => boolean

export interface StrictRequest {
  protocol: EndpointProtocol
  body: Json
  isOwn: IsOwnSignature
}

/** Why the service refuses the request with a 400; undefined if it does not. */
export function faultIn({ protocol, body, isOwn }: StrictRequest): string | undefined {
  switch (protocol) {
    case 'openai-chat':
      return chatFault(list(body['messages']), isOwn)
    case 'openai-responses':
      return responsesFault(list(body['input']), isOwn)
    case 'anthropic':
      return anthropicFault(body, isOwn)
    case 'google':
      return googleFault(list(body['contents']), isOwn)
  }
}

function chatFault(messages: Json[], isOwn: IsOwnSignature): string | undefined {
  if (messages.length === 0) return "Invalid 'messages': empty array. Expected an array with minimum length 1."
  const seen = new Set<string>()
  let due = new Set<string>()
  const open = () =>
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...due].join(', ')}`
  for (const [i, message] of messages.entries()) {
    const { role, content } = message
    const calls = list(message['tool_calls'])
    if (role === 'tool') {
      if (!due.delete(String(message['tool_call_id'])))
        return `messages[${i}]: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.`
      if (content === undefined || content === null)
        return `Invalid value for 'messages[${i}].content': expected a string.`
      continue
    }
    if (due.size > 0) return open()
    if (role === 'user' || role === 'system' || role === 'developer') {
      if (isEmpty(content)) return `Invalid value for 'messages[${i}].content': it is empty.`
      continue
    }
    if (role !== 'assistant') return `Invalid value: '${String(role)}' at messages[${i}].role.`
    if (isEmpty(content) && calls.length === 0)
      return `messages[${i}]: an assistant message needs content or tool_calls.`
    for (const detail of list(message['reasoning_details'])) {
      const { signature } = detail
      if (typeof signature === 'string' && !isOwn(signature))
        return `messages[${i}]: Invalid \`signature\` in reasoning.`
    }
    for (const { id, function: made } of calls) {
      if (typeof id !== 'string' || id === '' || id.length > 40)
        return `Invalid 'messages[${i}].tool_calls.id': expected a string with maximum length 40.`
      if (seen.has(id)) return `messages[${i}]: duplicate tool call id ${id}.`
      if (typeof (made as Json | undefined)?.['arguments'] !== 'string')
        return `messages[${i}].tool_calls.function.arguments: expected a string.`
      seen.add(id)
      due.add(id)
    }
  }
  return due.size > 0 ? open() : undefined
}

function responsesFault(input: Json[], isOwn: IsOwnSignature): string | undefined {
  if (input.length === 0) return 'One of "input" or "previous_response_id" or "prompt" must be provided.'
  const seen = new Set<string>()
  let due = new Set<string>()
  for (const [i, item] of input.entries()) {
    const { type = 'message' } = item
    if (type === 'function_call_output') {
      const id = String(item['call_id'])
      if (!due.delete(id)) return `No tool call found for function call output with call_id ${id}.`
      continue
    }
    if (type === 'function_call') {
      const id = String(item['call_id'])
      if (seen.has(id)) return `Duplicate function call with call_id ${id}.`
      seen.add(id)
      due.add(id)
      continue
    }
    // Calls of one reply stand together, then come all their outputs.
    if (due.size > 0) return `No tool output found for function call ${[...due].join(', ')}.`
    if (type === 'reasoning') {
      const { id, encrypted_content: state } = item
      if (typeof state === 'string' && !isOwn(state))
        return `The encrypted content for item ${String(id)} could not be verified.`
      const next = input[i + 1]
      const follows =
        next !== undefined &&
        (next['type'] === 'reasoning' || next['type'] === 'function_call' || next['role'] === 'assistant')
      if (!follows) return `Item '${String(id)}' of type 'reasoning' was provided without its required following item.`
      continue
    }
    if (type === 'message' && isEmpty(item['content'])) return `Invalid 'input[${i}].content': it is empty.`
  }
  return due.size > 0 ? `No tool output found for function call ${[...due].join(', ')}.` : undefined
}

function anthropicFault(body: Json, isOwn: IsOwnSignature): string | undefined {
  const messages = list(body['messages'])
  if (messages.length === 0) return 'messages: at least one message is required'
  if (messages[0]!['role'] !== 'user') return 'messages: first message must use the "user" role'
  const marks = JSON.stringify(body).split('"cache_control"').length - 1
  if (marks > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`
  const seen = new Set<string>()
  let due = new Set<string>()
  const open = (at: number) =>
    `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${[...due].join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
  for (const [i, { role, content }] of messages.entries()) {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
    if (blocks.length === 0) return `messages.${i}: all messages must have non-empty content`
    if (role !== 'user' && role !== 'assistant') return `messages.${i}: unexpected role "${String(role)}"`
    let isBehindResults = false
    for (const [at, block] of blocks.entries()) {
      const { type } = block as Json
      if (type === 'text' && String((block as Json)['text']).trim() === '')
        return `messages.${i}: text content blocks must be non-empty`
      if (type === 'tool_result') {
        const id = String((block as Json)['tool_use_id'])
        if (isBehindResults) return `messages.${i}: \`tool_result\` blocks must come before any other content`
        if (role !== 'user' || !due.delete(id))
          return `messages.${i}.content.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}.`
        continue
      }
      isBehindResults = true
      if (due.size > 0) return open(i - 1)
      if (type === 'thinking' || type === 'redacted_thinking') {
        const { signature, data } = block as Json
        const state = type === 'thinking' ? signature : data
        if (role !== 'assistant' || typeof state !== 'string' || !isOwn(state))
          return `messages.${i}.content.${at}: Invalid \`signature\` in \`thinking\` block`
      }
      if (type === 'tool_use') {
        const { id } = block as Json
        if (typeof id !== 'string' || !/^[\w-]+$/u.test(id))
          return `messages.${i}.content.${at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`
        if (seen.has(id)) return `messages.${i}: \`tool_use\` ids must be unique`
        seen.add(id)
      }
    }
    // A reply may go on behind a call: its results are due in the next message.
    if (role === 'assistant') {
      due = new Set(blocks.flatMap((block) => (block.type === 'tool_use' ? [String((block as Json)['id'])] : [])))
    }
  }
  if (due.size > 0) return open(messages.length - 1)
  if (seen.size > 0 && list(body['tools']).length === 0)
    return 'Requests which include `tool_use` or `tool_result` blocks must define tools'
  return thinkingFault(body, messages)
}

/** With thinking, the round that goes on begins with a thought. */
function thinkingFault(body: Json, messages: Json[]): string | undefined {
  const { type } = (body['thinking'] ?? {}) as Json
  if (type !== 'enabled' && type !== 'adaptive') return undefined
  const hasResult = ({ content }: Json) => list(content).some((block) => block['type'] === 'tool_result')
  const asked = messages.findLastIndex((message) => message['role'] === 'user' && !hasResult(message))
  const at = messages.findIndex(({ role }, i) => i > asked && role === 'assistant')
  if (at < 0) return undefined
  const blocks = list(messages[at]!['content'])
  const [first] = blocks
  if (!blocks.some((block) => block['type'] === 'tool_use')) return undefined
  if (first?.['type'] === 'thinking' || first?.['type'] === 'redacted_thinking') return undefined
  return `messages.${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first?.['type'])}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`
}

function googleFault(contents: Json[], isOwn: IsOwnSignature): string | undefined {
  if (contents.length === 0) return 'GenerateContentRequest.contents: contents is not specified'
  if (contents[0]!['role'] !== 'user') return 'Please ensure that the first content has the role user.'
  for (const [i, { role, parts: given }] of contents.entries()) {
    const parts = list(given)
    if (role !== 'user' && role !== 'model') return `Please use a valid role: user, model. (contents[${i}])`
    if (parts.length === 0) return `GenerateContentRequest.contents[${i}].parts: contents.parts must not be empty.`
    for (const { thoughtSignature } of parts) {
      if (typeof thoughtSignature === 'string' && !isOwn(thoughtSignature)) return 'Thought signature is not valid.'
    }
    const before = contents[i - 1]
    const calls = parts.filter((part) => part['functionCall'] !== undefined)
    const responses = parts.filter((part) => part['functionResponse'] !== undefined)
    const called = list(before?.['parts']).filter((part) => part['functionCall'] !== undefined)
    if (responses.length > 0 && (role !== 'user' || responses.length !== called.length))
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    if (responses.length === 0 && called.length > 0)
      return 'Please ensure that function response turn comes immediately after a function call turn.'
    if (calls.length > 0 && (role !== 'model' || before?.['role'] !== 'user'))
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
    for (const [at, part] of responses.entries()) {
      const { name, id } = part['functionResponse'] as Json
      const call = called[at]!['functionCall'] as Json
      if (name !== call['name'] || (id !== undefined && call['id'] !== undefined && id !== call['id']))
        return `The function response ${String(name)} does not answer the function call ${String(call['name'])}.`
    }
  }
  const last = list(contents.at(-1)!['parts'])
  return last.some((part) => part['functionCall'] !== undefined)
    ? 'Please ensure that function response turn comes immediately after a function call turn.'
    : undefined
}

function isEmpty(content: unknown): boolean {
  return content === undefined || content === null || (content as { length: number }).length === 0
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? (value as Json[]) : []
}

/** A message of a request, whatever the protocol. A turn of tools is a turn of its own. */
export interface ToldTurn {
  role: 'user' | 'assistant' | 'tool'
  text: string
  calls: { id: string; name: string; input: unknown }[]
  results: { id: string; text: string }[]
}

/** What the model is told, in order, without the instructions. */
export function turnsOf({ protocol, body }: Pick<StrictRequest, 'protocol' | 'body'>): ToldTurn[] {
  switch (protocol) {
    case 'openai-chat':
      return list(body['messages']).flatMap(({ role, content, tool_calls: made, tool_call_id: id }) => {
        if (role === 'system' || role === 'developer') return []
        if (role === 'tool') return [turn('tool', { results: [{ id: String(id), text: words(content) }] })]
        const calls = list(made).map((call) => {
          const { name, arguments: input } = call['function'] as { name: string; arguments: string }
          return { id: String(call['id']), name, input: JSON.parse(input) as unknown }
        })
        return [turn(role as 'user', { text: words(content), calls })]
      })
    case 'openai-responses':
      return list(body['input']).flatMap(({ type, role, content, name, call_id: id, arguments: input, output }) => {
        if (role === 'system' || role === 'developer' || type === 'reasoning') return []
        if (type === 'function_call_output')
          return [turn('tool', { results: [{ id: String(id), text: words(output) }] })]
        if (type === 'function_call') {
          const call = { id: String(id), name: String(name), input: JSON.parse(input as string) as unknown }
          return [turn('assistant', { calls: [call] })]
        }
        return [turn(role as 'user', { text: words(content) })]
      })
    case 'anthropic':
      return list(body['messages']).flatMap(({ role, content }) => {
        const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
        const of = (type: string) => blocks.filter((block) => block.type === type) as Json[]
        const results = of('tool_result').map((block) => ({
          id: String(block['tool_use_id']),
          text: words(block['content']),
        }))
        const calls = of('tool_use').map(({ id, name, input }) => ({ id: String(id), name: String(name), input }))
        const text = words(of('text'))
        // The package sends messages of the user that follow each other as one, a block each.
        if (role === 'user') {
          const said = of('text').map((block) => turn('user', { text: words([block]) }))
          return results.length > 0 ? [turn('tool', { results }), ...said] : said
        }
        return text !== '' || calls.length > 0 ? [turn('assistant', { text, calls })] : []
      })
    case 'google':
      return list(body['contents']).flatMap(({ role, parts: given }) => {
        const parts = list(given)
        const results = parts.flatMap(({ functionResponse: made }) =>
          made === undefined
            ? []
            : [{ id: String((made as Json)['id']), text: JSON.stringify((made as Json)['response']) }],
        )
        const calls = parts.flatMap(({ functionCall: made }) => {
          const { id, name, args } = (made ?? {}) as Json
          return made === undefined ? [] : [{ id: String(id), name: String(name), input: args }]
        })
        const text = parts
          .map(({ text, thought }) => (typeof text === 'string' && thought !== true ? text : ''))
          .join('')
        return [
          ...(results.length > 0 ? [turn('tool', { results })] : []),
          ...(text !== '' || calls.length > 0 ? [turn(role === 'model' ? 'assistant' : 'user', { text, calls })] : []),
        ]
      })
  }
}

function turn(role: ToldTurn['role'], { text = '', calls = [], results = [] }: Partial<ToldTurn>): ToldTurn {
  return { role, text, calls, results }
}

function words(content: unknown): string {
  if (typeof content === 'string') return content
  return list(content)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('')
}

/** The instructions of a request. */
export function systemOf({ protocol, body }: Pick<StrictRequest, 'protocol' | 'body'>): string {
  if (protocol === 'anthropic') return words(body['system'])
  if (protocol === 'google') return words(((body['systemInstruction'] ?? {}) as Json)['parts'])
  const all = list(body[protocol === 'openai-chat' ? 'messages' : 'input'])
  return all
    .filter(({ role }) => role === 'system' || role === 'developer')
    .map(({ content }) => words(content))
    .join('\n')
}
