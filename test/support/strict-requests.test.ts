/** The strict checks refuse what services refuse: each rule, in each protocol that has it. */
import { expect, test } from 'vitest'
import { faultIn, turnsOf, type StrictRequest } from './strict-requests.ts'

const isOwn = (signature: string) => signature === 'MINE'
const user = { role: 'user', content: 'Hi' }

const chatCall = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })
const chatCalls = (...ids: string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map(chatCall) })
const chatResult = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'seen' })
const chat = (...messages: object[]) => ({ protocol: 'openai-chat' as const, body: { messages } })

const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'look', arguments: '{}' })
const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'seen' })
const thought = (encrypted_content: string) => ({ type: 'reasoning', id: 'rs', encrypted_content, summary: [] })
const responses = (...input: object[]) => ({ protocol: 'openai-responses' as const, body: { input } })

const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} })
const result = (tool_use_id: string) => ({ type: 'tool_result', tool_use_id, content: 'seen' })
const thinking = (signature: string) => ({ type: 'thinking', thinking: 'Hm', signature })
const said = (...content: object[]) => ({ role: 'assistant', content })
const told = (...content: object[]) => ({ role: 'user', content })
const tools = [{ name: 'look' }]
const anthropic = (messages: object[], more: object = {}) => ({
  protocol: 'anthropic' as const,
  body: { messages, tools, ...more },
})

const google = (...contents: object[]) => ({ protocol: 'google' as const, body: { contents } })
const parts = (role: string, ...made: object[]) => ({ role, parts: made })
const functionCall = { functionCall: { id: 'c', name: 'look', args: {} } }
const functionResponse = { functionResponse: { id: 'c', name: 'look', response: {} } }
const hi = parts('user', { text: 'Hi' })

type Case = Omit<StrictRequest, 'isOwn'>

test.each<[string, Case]>([
  ['chat', chat(user, chatCalls('a', 'b'), chatResult('a'), chatResult('b'), user)],
  ['Responses', responses(user, thought('MINE'), call('a'), call('b'), output('a'), output('b'), user)],
  [
    'Anthropic',
    anthropic([user, said(use('a'), use('b')), told(result('a'), result('b'), { type: 'text', text: 'x' })]),
  ],
  [
    'Anthropic, thinking',
    anthropic([user, said(thinking('MINE'), use('a')), told(result('a'))], { thinking: { type: 'enabled' } }),
  ],
  ['Gemini', google(hi, parts('model', functionCall), parts('user', functionResponse), hi)],
])('a legal request of %s', (_, request) => {
  expect(faultIn({ ...request, isOwn })).toBeUndefined()
  expect(turnsOf(request)[0]).toMatchObject({ role: 'user', text: 'Hi' })
})

test.each<[string, Case, RegExp]>([
  [
    'chat: a message before all results',
    chat(user, chatCalls('a', 'b'), chatResult('a'), user),
    /did not have response messages: b/u,
  ],
  ['chat: the last message is a call', chat(user, chatCalls('a')), /did not have response messages: a/u],
  ['chat: a result of nothing', chat(user, chatResult('a')), /must be a response to a preceeding message/u],
  ['chat: an id twice', chat(user, chatCalls('a'), chatResult('a'), chatCalls('a'), chatResult('a')), /duplicate/u],
  ['chat: a long id', chat(user, chatCalls('a'.repeat(41))), /maximum length 40/u],
  ['chat: an empty message', chat({ role: 'user', content: '' }), /it is empty/u],
  [
    'chat: a foreign signature',
    chat(user, { role: 'assistant', content: 'x', reasoning_details: [{ signature: 'ELSE' }] }),
    /signature/u,
  ],
  ['Responses: a message before the output', responses(user, call('a'), user, output('a')), /No tool output found/u],
  ['Responses: no output', responses(user, call('a')), /No tool output found/u],
  ['Responses: an output of nothing', responses(user, output('a')), /No tool call found/u],
  ['Responses: a foreign item', responses(user, thought('ELSE'), call('a'), output('a')), /could not be verified/u],
  ['Responses: a thought alone', responses(user, thought('MINE'), user), /without its required following item/u],
  [
    'Anthropic: words before the results',
    anthropic([user, said(use('a')), told({ type: 'text', text: 'x' }, result('a'))]),
    /immediately after: a/u,
  ],
  ['Anthropic: no result', anthropic([user, said(use('a'))]), /immediately after: a/u],
  ['Anthropic: a result of nothing', anthropic([told(result('a'))]), /unexpected `tool_use_id`/u],
  [
    'Anthropic: an assistant first',
    anthropic([said({ type: 'text', text: 'x' })]),
    /first message must use the "user" role/u,
  ],
  ['Anthropic: an illegal id', anthropic([user, said(use('a.b')), told(result('a.b'))]), /should match pattern/iu],
  ['Anthropic: an empty text', anthropic([told({ type: 'text', text: ' ' })]), /must be non-empty/u],
  [
    'Anthropic: a foreign signature',
    anthropic([user, said(thinking('ELSE'), { type: 'text', text: 'x' }), user]),
    /Invalid `signature`/u,
  ],
  [
    'Anthropic: a round without a thought',
    anthropic([user, said(use('a')), told(result('a'))], { thinking: { type: 'enabled' } }),
    /Expected `thinking`/u,
  ],
  [
    'Anthropic: tools that are not declared',
    anthropic([user, said(use('a')), told(result('a'))], { tools: [] }),
    /must define tools/u,
  ],
  [
    'Gemini: a message before the response',
    google(hi, parts('model', functionCall), hi),
    /immediately after a function call turn/u,
  ],
  ['Gemini: a response of nothing', google(hi, parts('user', functionResponse)), /number of function response parts/u],
  [
    'Gemini: a call behind a call',
    google(hi, parts('model', { text: 'x' }), parts('model', functionCall)),
    /after a user turn/u,
  ],
  ['Gemini: no response', google(hi, parts('model', functionCall)), /immediately after a function call turn/u],
  [
    'Gemini: a foreign signature',
    google(hi, parts('model', { text: 'x', thoughtSignature: 'ELSE' }), hi),
    /signature/u,
  ],
  ['Gemini: no parts', google(parts('user')), /must not be empty/u],
])('%s is refused', (_, request, why) => {
  expect(faultIn({ ...request, isOwn })).toMatch(why)
})
