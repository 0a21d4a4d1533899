/** Agents for the clients that judge the OpenAI routes, one for each way in which an answer can go. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { errorPart, finish, text, type ScriptStep } from '../../src/models/testing/scripted-model.ts'
import type { HandlerOptions } from '../../src/server/handler-context.ts'
import { agent } from './engine.ts'
import { createTold, resultsIn, type Told } from './going-on.ts'
import { startServer, type TestServer } from './server.ts'

export const messages = [{ role: 'user' as const, content: 'Hi' }]

const pick = { from: { type: 'array', items: { type: 'string' } } }
/** Tools that the client runs, as the protocol has them. */
export const clientTools = [
  {
    type: 'function' as const,
    function: {
      name: 'pickColour',
      description: 'Picks one.',
      parameters: { type: 'object', properties: pick, required: ['from'] },
    },
  },
  { type: 'function' as const, function: { name: 'confirm', parameters: { type: 'object', properties: {} } } },
]

/** Three calls that are written at once: their arguments come in turns. */
export const threeCalls = [
  { id: 'call_a', name: 'pickColour', input: { from: ['red', 'green'] } },
  { id: 'call_b', name: 'pickColour', input: { from: ['blue', 'gold'] } },
  { id: 'call_c', name: 'confirm', input: {} },
]

function written(): ScriptStep[] {
  const calls = threeCalls.map((call) => ({ ...call, json: JSON.stringify(call.input) }))
  const longest = Math.max(...calls.map(({ json }) => json.length))
  const size = 5
  const rounds = Array.from({ length: Math.ceil(longest / size) }, (_, i) =>
    calls.flatMap(({ id, json }): ScriptStep[] => {
      const delta = json.slice(i * size, (i + 1) * size)
      return delta === '' ? [] : [{ type: 'tool-input-delta', id, delta }]
    }),
  )
  return [
    ...calls.map(({ id, name }): ScriptStep => ({ type: 'tool-input-start', id, toolName: name })),
    ...rounds,
    ...calls.map(({ id }): ScriptStep => ({ type: 'tool-input-end', id })),
    ...calls.map(({ id, name, json }): ScriptStep => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input: json,
    })),
  ]
}

const half: ScriptStep[] = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Half ' },
]

/** Each is an agent of that name; in all but the first two the answer does not come to its end. */
const scenes: Record<string, (prompt: Told['prompts'][number]) => ScriptStep[]> = {
  chat: () => [text('Hel', 'lo'), finish('stop', { in: 12, out: 5 })],
  calls(prompt) {
    const results = [...resultsIn(prompt)].map(([id, output]) => `${id}=${(output as { value: string }).value}`)
    if (results.length === 0) return [text('I ask you.'), written(), finish('tool-calls')]
    return [text(`You said ${results.join(', ')}.`), finish()]
  },
  error: () => [half, errorPart({ message: 'The provider broke.' })],
  cut: () => [half],
  budget: () => [
    half,
    ...Array.from({ length: 400 }, () => ({ type: 'text-delta' as const, id: 't', delta: 'x '.repeat(50) })),
    { type: 'text-end', id: 't' },
    finish(),
  ],
  length: () => [half, { type: 'text-end', id: 't' }, finish('length')],
}
/** How an answer that is none ends: the code that its error has. */
export const failures: [scene: string, code: string][] = [
  ['error', 'model-failed'],
  ['cut', 'model-incomplete'],
  ['budget', 'budget-exceeded'],
]

export interface Scenes extends TestServer {
  /** What the model of each agent was told. */
  models: Record<string, Told>
}

export async function startScenes(options: Partial<HandlerOptions> = {}): Promise<Scenes> {
  const models = Object.fromEntries(Object.entries(scenes).map(([name, answer]) => [name, createTold(answer)]))
  const agents = Object.fromEntries(
    Object.keys(scenes).map((name) => {
      const yaml = agent('', name === 'budget' ? 'budget: { tokens: 1000 }' : '').replace('script:m', `script:${name}`)
      return [name, yaml]
    }),
  )
  const server = await startServer({ agents, scripts: models }, options)
  onTestFinished(() => server.close())
  return { ...server, models }
}

/** A proxy that ends a body as if it were whole, once it holds this: what a client makes of it is its own affair. */
export async function startCutting(url: string, behind: string): Promise<string> {
  const proxy = createServer((request, response) => {
    void (async () => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece as Buffer)
      const answer = await fetch(url + request.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.concat(pieces),
      })
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type')! })
      const whole = await answer.text()
      const at = whole.indexOf(behind)
      response.end(at === -1 ? whole : whole.slice(0, whole.indexOf('\n\n', at) + 2))
    })()
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
}
