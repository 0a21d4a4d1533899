/** The engine and its handler in a runtime that has Web APIs and nothing of Node: bundled, and run in a bare context. */
import { resolve } from 'node:path'
import { createContext, Script, type Context } from 'node:vm'
import { rolldown } from 'rolldown'
import { beforeAll, describe, expect, test } from 'vitest'

const src = resolve(import.meta.dirname, '../../src')

const program = `
import { createRuntime, parseYaml, loadYaml, WorkflowExecutor } from '${src}/index.ts'
import { createHandler } from '${src}/server.ts'
import { createScriptedModel, text, finish, latch, toolCall } from '${src}/models/testing/scripted-model.ts'
const agent = (model, more = '') =>
  'workflow: [{ id: a, type: llm, config: { model: "' + model + '", stream: true, tools: [calculator]' + more + ' } }]'
export const gate = latch()
export const ended = []
const m = createScriptedModel([
  [text('first'), gate, text(' second'), finish()],
  [text('left'), latch(), finish()],
])
const runtime = createRuntime({
  agents: { demo: agent('demo:assistant'), held: agent('script:m', ', onFinish: note') },
  environment: { MILLRACE_DEMO_DELAY_MS: '0' },
  models: { providers: { script: () => m } },
  callbacks: { note: ({ text }) => ended.push(text) },
})
export const waited = []
export const handler = createHandler({ runtime, authorize: () => true, waitUntil: (promise) => waited.push(promise) })
export const ask = (agentId, content, path = '/api/beddel/chat') =>
  handler(new Request('http://edge' + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ agentId, messages: [{ role: 'user', content }] }),
  }))
export const execute = (content) =>
  new WorkflowExecutor(parseYaml(agent('demo:assistant')), { environment: { MILLRACE_DEMO_DELAY_MS: '0' } })
    .execute({ messages: [{ role: 'user', content }] })
export const load = () => loadYaml('a.yaml')
`

/** What every edge runtime has (https://min-common-api.proposal.wintertc.org), and not a name more. */
const webApis = `
  AbortController AbortSignal Blob ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy Crypto
  DOMException DecompressionStream Event EventTarget File FormData Headers Request ReadableStream
  ReadableStreamDefaultReader Response TextDecoder TextDecoderStream TextEncoder TextEncoderStream
  TransformStream URL URLPattern URLSearchParams WritableStream atob btoa clearInterval clearTimeout console
  crypto fetch performance queueMicrotask setInterval setTimeout structuredClone Uint8Array
`
  .trim()
  .split(/\s+/u)

/** As in `@edge-runtime/vm`, which Next.js uses. */
const withoutAny = new Proxy(AbortSignal, {
  get: (signal, key) => (key === 'any' ? undefined : (Reflect.get(signal, key) as unknown)),
})

interface Edge {
  handler(request: Request): Promise<Response>
  ask(agentId: string, content: string, path?: string): Promise<Response>
  execute(content: string): Promise<Response>
  load(): Promise<unknown>
  gate: { open(): void }
  ended: string[]
  waited: Promise<unknown>[]
}

let edge: Edge
let context: Context
describe('edge runtimes', () => {
  beforeAll(async () => {
    const bundle = await rolldown({
      input: 'program',
      platform: 'browser',
      resolve: { conditionNames: ['edge-light', 'worker', 'browser', 'import', 'default'] },
      logLevel: 'silent',
      plugins: [
        {
          name: 'program',
          resolveId: (id) => (id === 'program' ? id : null),
          load: (id) => (id === 'program' ? program : null),
        },
      ],
    })
    const { output } = await bundle.generate({ format: 'iife', name: 'edge', codeSplitting: false })
    await bundle.close()
    expect(output).toHaveLength(1)
    expect(output[0].imports).toEqual([])
    const globals = webApis.flatMap((name) => {
      const value: unknown = globalThis[name as keyof typeof globalThis]
      if (name === 'AbortSignal') return [[name, withoutAny] as const]
      return value === undefined ? [] : [[name, value] as const]
    })
    context = createContext(Object.fromEntries(globals), { codeGeneration: { strings: false, wasm: false } })
    edge = new Script(`${output[0].code}\nedge`).runInContext(context) as Edge
  }, 60_000)

  test('it is bare: nothing of Node, and no code out of strings', () => {
    const evaluate = (code: string) => new Script(code).runInContext(context) as unknown
    const names = ['process', 'require', 'Buffer', 'setImmediate', 'global', 'module', '__dirname']
    expect(names.map((name) => evaluate(`typeof ${name}`))).toEqual(names.map(() => 'undefined'))
    expect(evaluate('typeof AbortSignal.any')).toBe('undefined')
    expect(() => evaluate('eval("1")')).toThrow(/Code generation/)
  })

  test('the demo model answers, tools run, as plain text and as the AI SDK’s stream', async () => {
    const plain = await edge.ask('demo', 'What is 12*7?')
    expect([plain.status, plain.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(await plain.text()).toContain('84')
    const frames = await (await edge.ask('demo', 'What is 12*7?', '/api/chat')).text()
    expect(frames).toMatch(/^data: \{"type":"start"[^]*"output":\{"result":84\}[^]*data: \[DONE\]\n\n$/u)
  })

  test('the first token is there while the model is held; `waitUntil` is given the end, callbacks included', async () => {
    const response = await edge.ask('held', 'Hi')
    const reader = response.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('first')
    edge.gate.open()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(' second')
    expect(await edge.waited.at(-1)).toMatchObject({ outcome: 'completed', text: 'first second' })
    expect(edge.ended).toEqual(['first second'])
  })

  test('who leaves has stopped the run: nobody could come back for it', async () => {
    const response = await edge.ask('held', 'Hi')
    const reader = response.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('left')
    await reader.cancel()
    expect(await edge.waited.at(-1)).toMatchObject({ outcome: 'aborted', text: 'left' })
  })

  test('runs, errors and health as anywhere; loadYaml says that there are no files', async () => {
    const get = async (path: string) =>
      (await edge.handler(new Request(`http://edge${path}`))).json() as Promise<unknown>
    expect(await get('/health')).toMatchObject({ status: 'ok' })
    expect(await get('/api/runs')).toMatchObject({
      runs: expect.arrayContaining([expect.objectContaining({ agent: 'demo' })]),
    })
    expect((await edge.ask('nobody', 'Hi')).status).toBe(404)
    await expect(edge.load()).rejects.toMatchObject({ code: 'no-files' })
  })

  test('WorkflowExecutor gives a Response there', async () => {
    expect(await (await edge.execute('What is 12*7?')).text()).toContain('84')
  })
})
