/** A client that answers while another branch of the run is still writing gets a stream that its protocol allows. */
import { readUIMessageStream, uiMessageChunkSchema, parseJsonEventStream, type UIMessage } from 'ai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createScriptedModel, finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { startServer } from '../support/server.ts'

const tools = [{ name: 'pick', description: 'Asks the user', parameters: { type: 'object', properties: {} } }]

describe('chat: answer in the middle of a run', () => {
  test('the answer begins with the message, and says nothing of blocks that it did not begin', async () => {
    const gate = latch()
    const scripts = {
      cats: createScriptedModel([
        [toolCall('call_1', 'pick', {}), finish('tool-calls')],
        [text('Thanks.'), finish()],
      ]),
      dogs: createScriptedModel([
        [
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: 'one' },
          gate,
          { type: 'text-delta', id: 't', delta: ' two' },
          { type: 'text-end', id: 't' },
          finish(),
        ],
      ]),
      // Calls a tool of the server that ends behind the answer. The page that answers has not seen the call.
      birds: createScriptedModel([
        [toolCall('call_2', 'fly', {}), finish('tool-calls')],
        [text('Landed.'), finish()],
      ]),
    }
    const landing = Promise.withResolvers<string>()
    const fly = { parameters: z.object({}), execute: () => landing.promise }
    const branch = (name: string) =>
      `[{ id: ${name}, type: llm, config: { model: "script:${name}", stream: true${name === 'birds' ? ', tools: [fly]' : ''} } }]`
    const server = await startServer({
      agents: {
        a: `workflow: [{ id: both, type: parallel, config: { branches: { a: ${branch('cats')}, b: ${branch('dogs')}, c: ${branch('birds')} } } }]`,
      },
      scripts,
      tools: { fly },
    })
    onTestFinished(() => server.close())
    const post = (messages: unknown[]) =>
      fetch(`${server.url}/api/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agentId: 'a', id: 'c', tools, messages }),
      })
    const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go' }] }
    const first = await post([user])
    const id = first.headers.get('x-millrace-run-id')!
    const reader = first.body!.pipeThrough(new TextDecoderStream()).getReader()
    let seen = ''
    const isShown = (text: string) => seen.includes(text)
    while (!['"delta":"one"', '"toolCallId":"call_1"', '"toolCallId":"call_2"'].every(isShown))
      seen += (await reader.read()).value
    const call = 'call_1'
    const answered = { type: 'tool-pick', toolCallId: call, state: 'output-available', input: {}, output: 'picked' }
    const message = { id, role: 'assistant', parts: [{ type: 'step-start' }, answered, { type: 'text', text: 'one' }] }
    const second = await post([user, message])
    expect(second.headers.get('x-millrace-run-id')).toBe(id)
    gate.open()
    landing.resolve('done')
    const body = await second.text()
    const errors: unknown[] = []
    let last: UIMessage | undefined
    const stream = parseJsonEventStream({
      stream: new Response(body).body!,
      schema: uiMessageChunkSchema,
    }).pipeThrough(
      new TransformStream({
        transform: (chunk, out) => (chunk.success ? out.enqueue(chunk.value) : void errors.push(chunk.error)),
      }),
    )
    for await (const state of readUIMessageStream({
      message: message as UIMessage,
      stream,
      onError: (error) => errors.push(error),
    }))
      last = state
    expect(errors).toEqual([])
    const said = last!.parts.map((part) => (part.type === 'text' ? part.text : part.type))
    // Which branch writes first is chance, and so is whether the last one begins a step of its own.
    const kept = said.filter((part) => part !== 'step-start').toSorted()
    expect(kept).toEqual([' two', 'Landed.', 'Thanks.', 'one', 'tool-fly', 'tool-pick'])
    expect(body.startsWith(`data: {"type":"start","messageId":"${id}"}`)).toBe(true)
  })
})
