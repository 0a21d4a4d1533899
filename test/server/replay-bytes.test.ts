/** A replay sends the bytes that the live client got, through every protocol, with what the client asked of it: text, tools, approvals, errors, stops. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  createScriptedModel,
  finish,
  latch,
  reasoning,
  text,
  throws,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import { MillraceError } from '../../src/part/error.ts'
import { agent } from '../support/engine.ts'
import { startServer } from '../support/server.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const completion = { model: 'a', stream: true, stream_options: { include_usage: true } }
const agUi = (more: object) => {
  const input = { threadId: 't', runId: 'client-run', state: {}, tools: [], context: [], forwardedProps: {}, ...more }
  return { ...input, messages: [{ id: 'm', ...messages[0] }] }
}
type Request = [format: string, path: string, body: object, headers?: Record<string, string>]
const protocols: Record<string, Request> = {
  'AI SDK': ['ui', '/api/chat', { agentId: 'a', messages }],
  'AI SDK 7': ['ui', '/api/chat', { agentId: 'a', messages }, { 'x-millrace-ui': '7' }],
  'plain text': ['text', '/api/chat?format=text', { agentId: 'a', messages }],
  OpenAI: ['openai', '/v1/chat/completions', { ...completion, messages }],
  'OpenAI without usage': ['openai', '/v1/chat/completions', { model: 'a', stream: true, messages }],
  'OpenAI Completions': ['openai', '/v1/completions', { ...completion, prompt: 'Hi' }],
  'AG-UI': ['ag-ui', '/ag-ui/a', agUi({})],
}
const add = {
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }: { a: number; b: number }) => ({ sum: a + b }),
}

interface Case {
  script: () => ScriptStep[][]
  yaml?: string
  /** The client stops the run when the model is held there. */
  stopAt?: ReturnType<typeof latch>
}
const cases: Record<string, () => Case> = {
  text: () => ({ script: () => [[reasoning('Hm'), text('Hel', 'lo 😀'), finish()]] }),
  'a tool': () => ({
    script: () => [
      [text('Let me see. '), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')],
      [text('3'), finish()],
    ],
    yaml: 'tools: [add]',
  }),
  'an approval': () => ({
    script: () => [[text('May I? '), toolCall('c1', 'add', { a: 1, b: 2 }), finish('tool-calls')]],
    yaml: 'tools: [{ name: add, approval: true }]',
  }),
  'an error': () => ({
    script: () => [[text('Hel'), throws(new MillraceError('model-failed', 'It broke.'))]],
  }),
  'a stop': () => {
    const stopAt = latch()
    return { script: () => [[text('Hel'), stopAt, text('lo'), finish()]], stopAt }
  },
}

/** What comes until the end, or until the transfer breaks off. */
async function bytesOf(response: Response): Promise<string> {
  const decoder = new TextDecoder()
  let all = ''
  try {
    for await (const chunk of response.body!) all += decoder.decode(chunk, { stream: true })
  } catch {
    return `${all}<broken>`
  }
  return all
}

describe.each(Object.keys(protocols))('%s', (protocol) => {
  const [format, path, body, headers = {}] = protocols[protocol]!

  test.each(Object.keys(cases))('%s: the replay is the stream, byte for byte', async (name) => {
    const { script, yaml = '', stopAt } = cases[name]!()
    const server = await startServer({
      agents: { a: agent(`retries: 0\n${yaml}`.trim()) },
      scripts: { m: createScriptedModel(script()) },
      tools: { add },
    })
    onTestFinished(() => server.close())
    const live = await server.post(path, body, { headers })
    const run = live.headers.get('x-millrace-run-id')!
    const reading = bytesOf(live)
    if (stopAt !== undefined) {
      await stopAt.reached
      await server.post(`/api/runs/${run}/stop`, {})
    }
    const sent = await reading
    expect(sent.length).toBeGreaterThan(0)
    // The end of an answer is sent before that of its run.
    await expect.poll(async () => (await server.store.runs.get(run))?.status).not.toBe('running')
    const replayed = await fetch(`${server.url}/api/runs/${run}/replay?format=${format}&speed=max`)
    expect(replayed.headers.get('content-type')).toBe(live.headers.get('content-type'))
    expect(await bytesOf(replayed)).toBe(sent)
    if (protocol.startsWith('OpenAI'))
      expect(sent.includes('"usage":{')).toBe(
        protocol !== 'OpenAI without usage' && sent.includes('finish_reason":"stop'),
      )
  })
})
