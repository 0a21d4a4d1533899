/** Whole recorded tool loops, one recorded answer a request: the engine and `streamText` go the same way to the same end. */
import { afterEach, expect, test } from 'vitest'
import { toJson } from '../../src/part/json.ts'
import { protocolOf, recordedFixtures, type ProviderFixture } from '../../src/models/testing/provider-fixtures.ts'
import { startRecordedProvider } from '../../src/models/testing/recorded-provider.ts'
import { ours, theirs } from '../../src/models/testing/said.ts'
import { only } from '../support/engine.ts'
import { comparable, createRecordedEngine, hearOracle, modelParts, type Setting } from './through-engine.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})
function keep<T extends { close(): Promise<void> }>(each: T): T {
  open.unshift(each)
  return each
}

const recorded = recordedFixtures()
const composed = composedLoop()
const loops = [
  { name: 'openai-loop', steps: stepsOf('openai-loop'), count: 4 },
  { name: 'anthropic-loop', steps: stepsOf('anthropic-loop'), count: 3 },
]

function stepsOf(loop: string): ProviderFixture[] {
  return recorded.filter(({ name }) => name.startsWith(`${loop}.step`)).toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

for (const { name, steps, count } of [{ name: 'a composed loop', steps: composed, count: 2 }, ...loops]) {
  test.skipIf(steps.length === 0)(
    `${name}: same requests, same content, same messages, same usage, same end`,
    async () => {
      expect(steps).toHaveLength(count)
      const replies = steps.map((step) => ({ protocol: protocolOf(step), lines: step.lines }))
      const provider = keep(await startRecordedProvider([...replies, ...replies]))
      const setting: Setting = {
        protocol: replies[0]!.protocol,
        tools: [...new Set(steps.flatMap(({ tools }) => tools))],
        execute: (input) => ({ seen: input, value: 42 }),
        maxSteps: 8,
        // As it was recorded: nothing is kept by the provider, so that every request carries the whole conversation.
        providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } },
      }
      const oracle = await hearOracle(setting, provider)
      const { result, entries, finished, errors, ran } = await keep(createRecordedEngine(setting, provider)).hear()

      expect(provider.requests).toHaveLength(2 * count)
      for (let i = 0; i < count; i++) {
        expect(provider.requests[count + i]?.body, `request ${i + 1}`).toEqual(provider.requests[i]?.body)
      }
      expect(result).toMatchObject({ outcome: 'completed', text: oracle.parts.flatMap(textOf).join('') })
      expect(errors).toEqual([])
      const said = ours(modelParts(entries))
      expect(comparable(said)).toEqual(comparable(theirs(oracle.parts)))
      const end = oracle.parts.find(({ type }) => type === 'finish')
      if (end?.type !== 'finish') throw new Error('the oracle did not finish')
      const { inputTokens, outputTokens, totalTokens } = end.totalUsage
      expect(result.usage).toMatchObject({ source: 'reported', inputTokens, outputTokens, totalTokens })
      expect(only(entries, 'answer-end')[0]).toMatchObject({ finishReason: end.finishReason })
      expect(finished?.text).toBe(oracle.text)
      expect(finished?.steps).toHaveLength(count)
      expect(finished?.response.messages).toEqual(toJson(oracle.messages))
      // What a provider runs itself is not run here.
      const calls = only(entries, 'tool-call').filter(({ providerExecuted }) => providerExecuted !== true)
      expect(ran).toEqual(calls.map(({ toolName }) => toolName))
    },
  )
}

function textOf(part: { type: string; text?: string }): string[] {
  return part.type === 'text-delta' && part.text !== undefined ? [part.text] : []
}

/**
 * So that a loop is compared also where the recordings are not there: thinking with a signature, two calls at
 * once, and the provider's own search, whose result comes with the answer after.
 */
function composedLoop(): ProviderFixture[] {
  const search = 'tool_search_tool_bm25'
  const found = {
    type: 'tool_search_tool_search_result',
    tool_references: [{ type: 'tool_reference', tool_name: 'get' }],
  }
  const usage = { input_tokens: 7, output_tokens: 1 }
  const message = { id: 'msg', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage }
  const block = (index: number, start: object, ...deltas: object[]) => [
    { type: 'content_block_start', index, content_block: start },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]
  const call = (index: number, id: string, json: string) =>
    block(index, { type: 'tool_use', id, name: 'get', input: {} }, { type: 'input_json_delta', partial_json: json })
  const answer = (reason: string, ...chunks: object[]) => [
    { type: 'message_start', message },
    ...chunks,
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ]
  const lines = [
    answer(
      'tool_use',
      ...block(
        0,
        { type: 'thinking', thinking: '' },
        { type: 'thinking_delta', thinking: 'Hmm' },
        { type: 'signature_delta', signature: 'c2ln' },
      ),
      ...call(1, 'toolu_1', '{"q":"ü"}'),
      ...call(2, 'toolu_2', '{"q":2}'),
      ...block(
        3,
        { type: 'server_tool_use', id: 'srvtoolu_1', name: search, input: {} },
        { type: 'input_json_delta', partial_json: '{"query":"x"}' },
      ),
    ),
    answer(
      'end_turn',
      ...block(0, { type: 'tool_search_tool_result', tool_use_id: 'srvtoolu_1', content: found }),
      ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Both.' }),
    ),
  ].map((chunks) => chunks.map((chunk) => JSON.stringify(chunk)))
  return lines.map((each, i) => ({
    name: `step${i}`,
    provider: 'anthropic',
    lines: each,
    tools: i === 0 ? ['get', search] : [],
  }))
}
