/** LangChain's ChatOpenAI against the routes, over a real socket: invoke, stream, bound tools. */
import { concat } from '@langchain/core/utils/stream'
import { AIMessageChunk, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { ChatOpenAI } from '@langchain/openai'
import { describe, expect, test } from 'vitest'
import { clientTools, failures, startCutting, startScenes, threeCalls } from '../support/openai.ts'

const modelOf = (url: string, model: string) =>
  new ChatOpenAI({ model, apiKey: 'none', maxRetries: 0, configuration: { baseURL: `${url}/v1` } })
const asked: BaseMessage[] = [new HumanMessage('Hi')]

type Streaming = { stream(messages: BaseMessage[]): Promise<AsyncIterable<AIMessageChunk>> }

/** All its chunks as one message. */
async function streamed(model: Streaming, messages = asked): Promise<AIMessageChunk> {
  let whole: AIMessageChunk | undefined
  for await (const chunk of await model.stream(messages)) whole = whole === undefined ? chunk : concat(whole, chunk)
  return whole!
}

describe('OpenAI: LangChain', () => {
  test('a chat: invoked and streamed, with its usage', async () => {
    const { url } = await startScenes()
    const usage = { input_tokens: 12, output_tokens: 5, total_tokens: 17 }
    const pieces = []
    for await (const { content } of await modelOf(url, 'chat').stream(asked)) if (content !== '') pieces.push(content)
    expect(pieces).toEqual(['Hel', 'lo'])
    const message = await streamed(modelOf(url, 'chat'))
    expect(message.response_metadata['finish_reason']).toBe('stop')
    expect(message.usage_metadata).toMatchObject(usage)
    const whole = await modelOf(url, 'chat').invoke(asked)
    expect([whole.content, whole.response_metadata['finish_reason']]).toEqual(['Hello', 'stop'])
    expect(whole.usage_metadata).toMatchObject(usage)
  })

  test('bound tools: three calls that were written at once, and their results in a new run', async () => {
    const { url, store } = await startScenes()
    const model = modelOf(url, 'calls').bindTools(clientTools)
    for (const ask of [
      (messages: BaseMessage[]) => streamed(model, messages),
      (messages: BaseMessage[]) => model.invoke(messages),
    ]) {
      const first = await ask(asked)
      expect(first.content).toBe('I ask you.')
      expect(first.response_metadata['finish_reason']).toBe('tool_calls')
      expect(first.tool_calls!.map(({ id, name, args }) => ({ id, name, input: args }))).toEqual(threeCalls)
      expect(first.invalid_tool_calls ?? []).toEqual([])
      const results = first.tool_calls!.map(({ id }) => new ToolMessage({ tool_call_id: id!, content: `r-${id}` }))
      const second = await ask([...asked, first, ...results])
      expect(second.content).toBe('You said call_a=r-call_a, call_b=r-call_b, call_c=r-call_c.')
      expect(second.response_metadata['finish_reason']).toBe('stop')
    }
    expect((await store.runs.list()).map(({ status }) => status)).toEqual(Array(4).fill('completed'))
  })

  test.each(failures)('%s: it throws, streamed and invoked', async (name, code) => {
    const { url } = await startScenes()
    await expect(streamed(modelOf(url, name))).rejects.toMatchObject({ code })
    await expect(modelOf(url, name).invoke(asked)).rejects.toMatchObject({ code })
  })

  test('length: the answer says that it is not whole', async () => {
    const { url } = await startScenes()
    expect((await streamed(modelOf(url, 'length'))).response_metadata['finish_reason']).toBe('length')
    expect((await modelOf(url, 'length').invoke(asked)).response_metadata['finish_reason']).toBe('length')
  })

  test('a body that a proxy cuts off: it takes it for an answer, which has no reason to have ended', async () => {
    const { url } = await startScenes()
    const message = await streamed(modelOf(await startCutting(url, '"Hel"'), 'chat'))
    expect([message.content, message.response_metadata['finish_reason']]).toEqual(['Hel', undefined])
  })
})
