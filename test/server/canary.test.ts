/**
 * A secret that comes from every side is nowhere afterwards: not in a byte of the data folder, not in what any route answers, not in what
 * a socket is told, not in the spans.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { partTypes } from '../../src/part/part.ts'
import { finish, reasoning, text, toolCall, createScriptedModel } from '../../src/models/scripted.ts'
import { serve } from '../../src/server/serve.ts'
import { builtinWires } from '../../src/wire/builtin-wires.ts'
import { folder } from '../support/cli.ts'
import { startCollector } from '../support/collector.ts'
import { connectSocket, runInput } from '../support/socket.ts'

const secret = 'sk-canary-abcdefghijklmnop'
const [head, tail] = [secret.slice(0, 9), secret.slice(9)]
/** Found also where a cut has left a piece. */
const piece = 'canary-abc'

const yaml = (model: string, rest = '') => `onBusy: queue
workflow:
  - id: answer
    type: llm
    config: { model: "script:${model}", stream: true, system: "Key: $env.SHOP_API_KEY", tools: [leak, fail, ask], maxSteps: 5 }
${rest}`

/** Again and again. */
function inTurn<T>(calls: T[]): (call: unknown, n: number) => T {
  return (_, n) => calls[(n - 1) % calls.length]!
}

const scripts: Record<string, Parameters<typeof createScriptedModel>[0]> = {
  says: () => [reasoning(`it is ${head}`, tail), text(`It is ${head}`, `${tail}.`), finish()],
  calls: inTurn([
    [toolCall('leak', { note: secret }), finish('tool-calls')],
    [toolCall('fail', { [secret]: secret }), finish('tool-calls')],
    [text('Done: ', secret), finish()],
  ]),
  breaks: () => [text('So far'), { type: 'error', error: new Error(`bad key ${secret}`) }],
  asks: [
    [toolCall('ask', { note: secret }), finish('tool-calls')],
    [text('Thanks.'), finish()],
  ],
}

const tools = {
  leak: {
    description: `Uses ${secret}`,
    parameters: z.looseObject({}),
    execute: () => ({ out: secret, list: [`x${secret}x`] }),
  },
  fail: {
    parameters: z.looseObject({}),
    execute: () => {
      throw new Error(`refused ${secret}`)
    },
  },
  ask: { description: 'Asks', parameters: z.looseObject({}) },
}

async function started(endpoint: string) {
  const key = `canary-${Math.random()}`
  const models = Object.fromEntries(
    Object.entries(scripts).map(([name, script]) => [name, createScriptedModel(script)]),
  )
  Object.assign(globalThis, { [key]: { models, tools } })
  const shared = `globalThis[${JSON.stringify(key)}]`
  const config = `export default {
    env: ['SHOP_API_KEY'],
    tools: ${shared}.tools,
    models: { providers: { script: (name) => ${shared}.models[name] } },
    telemetry: { otlp: { endpoint: ${JSON.stringify(endpoint)}, content: true } },
  }`
  const agents = Object.keys(scripts).map((name) => [`${name}.yaml`, yaml(name)])
  const dir = folder({ ...Object.fromEntries(agents), 'millrace.config.mjs': config })
  const data = join(folder(), 'data')
  const printed: string[] = []
  const env = { SHOP_API_KEY: secret }
  const server = await serve({ dir, data, port: 0, logFiles: true, env, log: (line) => void printed.push(line) })
  onTestFinished(() => server.close())
  return { ...server, data, printed }
}

/** All that a stream of events sends until its server closes. */
async function listen(url: string): Promise<() => Promise<string>> {
  const reader = (await fetch(url)).body!.getReader()
  const chunks: Uint8Array[] = []
  const read = async () => {
    for (let next; !(next = await reader.read()).done;) chunks.push(next.value)
  }
  const done = read().catch(() => undefined)
  return async () => (await done, Buffer.concat(chunks).toString())
}

function bytesUnder(path: string): [file: string, text: string][] {
  if (!statSync(path).isDirectory()) return [[path, readFileSync(path, 'latin1')]]
  return readdirSync(path).flatMap((name) => bytesUnder(join(path, name)))
}

describe('canary texts', () => {
  test('a secret in prompts, tools, errors and answers is in no file, no span and no answer of any route', async () => {
    const collector = await startCollector()
    const { url, data, printed, close } = await started(collector.url)
    const later = await listen(`${url}/api/events?types=${partTypes.join(',')}`)
    const live = await listen(`${url}/api/live?rows=1&agents=1`)
    const said: [route: string, body: string][] = []
    const post = async (path: string, body: object) => {
      const headers = { 'content-type': 'application/json', accept: '*/*', authorization: `Bearer ${secret}` }
      const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
      const heads = JSON.stringify([...response.headers])
      // A plain text that fails breaks off.
      said.push([`${path} ${JSON.stringify(body).slice(0, 60)}`, heads + (await response.text().catch(() => ''))])
    }
    const messages = [{ role: 'user', content: `My key is ${secret}` }]
    for (const agent of ['says', 'calls', 'breaks', 'asks']) {
      await post('/api/chat', { agentId: agent, messages, id: `chat-${agent}`, note: secret })
    }
    await post('/api/beddel/chat', { agentId: 'says', messages })
    await post('/v1/chat/completions', { model: 'says', messages, stream: true })
    await post('/v1/chat/completions', { model: 'says', messages })
    await post('/v1/chat/completions', { model: 'calls', messages, user: secret })
    await post('/v1/responses', { model: 'says', input: secret, instructions: secret, stream: true })
    await post('/v1/responses', { model: 'calls', input: messages, metadata: { note: secret } })
    await post('/v1/completions', { model: 'breaks', prompt: secret })
    await post('/ag-ui/says', {
      threadId: 'ag',
      runId: 'r1',
      messages: [{ id: 'm', role: 'user', content: secret }],
      tools: [],
      context: [{ description: 'key', value: secret }],
      state: { key: secret },
      forwardedProps: {},
    })
    const socket = await connectSocket(url)
    for (const agent of ['says', 'calls', 'breaks']) {
      const given = {
        threadId: `socket-${agent}`,
        runId: agent,
        forwardedProps: { agent, note: secret },
        state: { key: secret },
      }
      const ack = await socket.send(
        'run_agent',
        runInput({ ...given, messages: [{ id: 'm', role: 'user', content: secret }] }),
      )
      expect(ack).toMatchObject({ ok: true })
      said.push([`socket ${agent}`, JSON.stringify([ack, await socket.ended(agent)])])
    }
    said.push(['socket agents', JSON.stringify(socket.agents)])
    const { runs } = (await (await fetch(`${url}/api/runs`)).json()) as {
      runs: { id: string; threadId: string; status: string }[]
    }
    expect(runs.map(({ status }) => status).toSorted()).toEqual([
      ...Array<string>(11).fill('completed'),
      ...Array<string>(3).fill('failed'),
      'suspended',
    ])
    const waiting = runs.find(({ status }) => status === 'suspended')!.id
    const { requests } = (await (await fetch(`${url}/api/runs/${waiting}/requests`)).json()) as {
      requests: { requestId: string }[]
    }
    await post(`/api/runs/${waiting}/requests/${requests[0]!.requestId}`, { output: { answer: secret } })
    await post(`/api/runs/${runs[0]!.id}/fork`, { at: 1, input: { messages } })
    const paths = runs.flatMap(({ id, threadId }) => [
      ...['', '/events', '/requests', '/export', '/outline', '/prompt?step=main/answer/1'].map(
        (rest) => `/api/runs/${id}${rest}`,
      ),
      ...[...builtinWires.keys()].map((format) => `/api/runs/${id}/replay?speed=max&format=${format}`),
      `/api/threads/${threadId}`,
      ...['', '?stream=true', '/input_items'].map((rest) => `/v1/responses/resp_${id}${rest}`),
    ])
    const [a, b] = runs
    for (const path of [
      '/',
      '/health',
      '/metrics',
      '/api/stats',
      '/api/server',
      '/api/runs',
      '/api/agents',
      '/api/threads',
      '/v1/models',
      `/api/diff?a=${a!.id}&b=${b!.id}`,
      '/api/search?q=key',
      `/api/search?q=${secret}`,
      '/api/runs?q=canary',
      ...paths,
    ]) {
      const response = await fetch(url + path)
      const echo = path.includes(secret) ? secret : ''
      said.push([path, (await response.text().catch(() => '')).replaceAll(echo === '' ? '\0' : echo, '')])
    }
    const monitor = await fetch(
      `${url}/api/events?after=0&types=text-delta,tool-call,tool-result,prompt,run-start,run-end`,
    )
    const reader = monitor.body!.getReader()
    let events = ''
    while (!events.includes('run-end')) events += Buffer.from((await reader.read()).value!).toString()
    await reader.cancel()
    said.push(['/api/events', events])

    await close()
    said.push(['/api/events, later', await later()], ['/api/live', await live()])
    said.push(...collector.requests.map(({ body }): [string, string] => ['spans', body]))
    const files = bytesUnder(data)
    expect(files.filter(([file]) => file.endsWith('.ndjson')).length).toBeGreaterThanOrEqual(runs.length)
    const leaks = [...said, ...files, ['printed', printed.join('\n')] as const].flatMap(([place, what]) => {
      const at = what.indexOf(piece)
      return at < 0 ? [] : [[place, what.slice(Math.max(0, at - 100), at + 40)]]
    })
    expect(leaks).toEqual([])
    // It was there to be found.
    expect(collector.spans.map((span) => span.attributes['millrace.run.id'])).toEqual(
      expect.arrayContaining(runs.map(({ id }) => id)),
    )
    expect(collector.requests.map(({ body }) => body).join('')).toContain('gen_ai.output.messages')
    const shown = [...said, ...files].filter(([, what]) => what.includes('[redacted]')).map(([place]) => place)
    expect(shown).toEqual(
      expect.arrayContaining([
        join(data, 'millrace.db'),
        '/api/events',
        '/api/events, later',
        'spans',
        'socket says',
        'socket calls',
        'socket breaks',
        `/api/runs/${waiting}/events`,
      ]),
    )
    expect(shown.filter((place) => place.endsWith('.ndjson')).length).toBeGreaterThan(5)
  })
})
