/** The AI SDK with `@ai-sdk/openai-compatible` against the routes, over a real socket: its own tool loop, its own tools. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, jsonSchema, streamText, tool, type JSONSchema7 } from 'ai'
import { describe, expect, test } from 'vitest'
import { clientTools, failures, startCutting, startScenes, threeCalls } from '../support/openai.ts'

const modelOf = (url: string, name: string) =>
  createOpenAICompatible({ name: 'millrace', baseURL: `${url}/v1`, includeUsage: true })(name)

/** They run in the client: what each was asked stands in the list. */
function ownTools() {
  const ran: [string, unknown][] = []
  const tools = Object.fromEntries(
    clientTools.map(({ function: { name, parameters } }) => {
      const execute = async (input: unknown, { toolCallId }: { toolCallId: string }) => {
        ran.push([toolCallId, input])
        return `r-${toolCallId}`
      }
      return [name, tool({ inputSchema: jsonSchema(parameters as JSONSchema7), execute })]
    }),
  )
  return { ran, tools }
}

describe('OpenAI: AI SDK', () => {
  test('a chat: text as it comes, why it ended, the usage', async () => {
    const { url } = await startScenes()
    const result = streamText({ model: modelOf(url, 'chat'), prompt: 'Hi', maxRetries: 0 })
    const pieces = []
    for await (const piece of result.textStream) pieces.push(piece)
    expect(pieces).toEqual(['Hel', 'lo'])
    expect(await result.finishReason).toBe('stop')
    expect(await result.usage).toMatchObject({ inputTokens: 12, outputTokens: 5, totalTokens: 17 })
    const whole = await generateText({ model: modelOf(url, 'chat'), prompt: 'Hi', maxRetries: 0 })
    expect([whole.text, whole.finishReason, whole.usage.totalTokens]).toEqual(['Hello', 'stop', 17])
  })

  test('its tool loop: three calls that were written at once run in the client, and a new run gets their results', async () => {
    const { url, store, models } = await startScenes()
    const { ran, tools } = ownTools()
    const result = streamText({
      model: modelOf(url, 'calls'),
      prompt: 'Hi',
      tools,
      stopWhen: isStepCount(3),
      maxRetries: 0,
    })
    expect(await result.text).toBe('You said call_a=r-call_a, call_b=r-call_b, call_c=r-call_c.')
    const steps = await result.steps
    expect(steps.map(({ finishReason, text }) => [finishReason, text])).toEqual([
      ['tool-calls', 'I ask you.'],
      ['stop', expect.any(String)],
    ])
    expect(new Map(ran)).toEqual(new Map(threeCalls.map(({ id, input }) => [id, input])))
    expect((await store.runs.list()).map(({ status }) => status)).toEqual(['completed', 'completed'])
    expect(models['calls']!.prompts).toHaveLength(2)

    const again = ownTools()
    const whole = await generateText({
      model: modelOf(url, 'calls'),
      prompt: 'Hi',
      tools: again.tools,
      stopWhen: isStepCount(3),
      maxRetries: 0,
    })
    expect(whole.text).toBe(await result.text)
    expect(new Map(again.ran)).toEqual(new Map(ran))
  })

  test.each(failures)('%s: an error, and no end of an answer', async (name) => {
    const { url } = await startScenes()
    const errors: unknown[] = []
    const result = streamText({
      model: modelOf(url, name),
      prompt: 'Hi',
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    })
    let text = ''
    for await (const piece of result.textStream) text += piece
    expect(text).toMatch(/^Half /u)
    expect(errors).toHaveLength(1)
    expect(await result.finishReason).toBe('error')
    await expect(generateText({ model: modelOf(url, name), prompt: 'Hi', maxRetries: 0 })).rejects.toThrow()
  })

  test('length: the answer says that it is not whole', async () => {
    const { url } = await startScenes()
    const result = streamText({ model: modelOf(url, 'length'), prompt: 'Hi', maxRetries: 0 })
    expect(await result.text).toBe('Half ')
    expect(await result.finishReason).toBe('length')
  })

  test('a body that a proxy cuts off is an error to it', async () => {
    const { url } = await startScenes()
    const cut = await startCutting(url, '"Hel"')
    const result = streamText({ model: modelOf(cut, 'chat'), prompt: 'Hi', maxRetries: 0, onError: () => undefined })
    expect(await result.text).toBe('Hel')
    expect(await result.finishReason).toBe('error')
  })
})
