import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { expect, test } from 'vitest'
import { framed } from '../testing/cuts.ts'
import { createAnthropicDecoder } from './decoder.ts'
import { anthropicFactsOf } from './facts.ts'

const message = (id: string) => ({ type: 'message_start', message: { id, usage: { input_tokens: 7 } } })

test('a second message does not change the end of the first, which came without any counts', () => {
  const parts: LanguageModelV4StreamPart[] = []
  const decoder = createAnthropicDecoder({
    emit: (part) => parts.push(part),
    warnings: [],
    who: 'anthropic:m',
    request: { url: 'http://x/', body: {} },
    facts: { usesJsonTool: false, includePings: false, documents: [] },
  })
  decoder.push(framed([{ type: 'message_stop' }, message('second')].map((event) => JSON.stringify(event))))
  const finish = parts.find(({ type }) => type === 'finish')
  expect(finish).toMatchObject({ usage: { raw: { input_tokens: 0, output_tokens: 0 } } })
})

test('requests with provider tools are left to the package', () => {
  const tool = { type: 'provider' as const, id: 'anthropic.bash_20250124' as const, name: 'sh', args: {} }
  expect(anthropicFactsOf({ prompt: [], tools: [tool] }, {})).toBeUndefined()
  const providerOptions = { anthropic: { toolChanges: [] } }
  expect(anthropicFactsOf({ prompt: [{ role: 'system', content: '', providerOptions }] }, {})).toBeUndefined()
})
