/** Each request begins as the one before it: tools and system byte for byte, and messages are only added. A provider's cache depends on it. */
import { rmSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  startRecordedProvider,
  type Protocol,
  type RecordedProvider,
} from '../../src/models/testing/recorded-provider.ts'
import { createEngine, entriesOf, only, type Engine } from '../support/engine.ts'
import { says, thinksAndCalls } from '../support/protocol-lines.ts'

const protocols: Protocol[] = ['openai-chat', 'openai-responses', 'anthropic', 'google']

const tools = {
  look: { description: 'Looks', parameters: z.object({ at: z.string().optional() }), execute: () => ({ seen: 'é 1' }) },
  send: { description: 'Sends', parameters: z.object({ to: z.string().optional() }), execute: () => 'sent' },
}
const yaml = (rest: string) => `
history: server
workflow:
  - id: answer
    type: llm
    config:
      model: "box:m"
      stream: true
      system: "You are the desk."
      messages: $input.messages
      maxSteps: 10
      tools: [look, { name: send, approval: true }]
${rest}`

let provider: RecordedProvider
let engine: Engine
afterEach(async () => {
  await engine.close()
  await provider.close()
})

const rounds = 3
const turns = 5

/** Five turns of three rounds of tools and an answer: twenty calls. In each third round a tool needs an approval. */
async function converse(protocol: Protocol): Promise<Record<string, unknown>[]> {
  const turn = (n: number) => [
    ...[1, 2].map((i) => thinksAndCalls('look', `call_${n}_${i}`, { at: `place ${i}` })[protocol]),
    thinksAndCalls('send', `call_${n}_3`, { to: 'you' })[protocol],
    says[protocol],
  ]
  const replies = Array.from({ length: turns }, (_, n) => turn(n)).flat()
  provider = await startRecordedProvider(replies.map((lines) => ({ protocol, lines })))
  const open = (dir?: string) =>
    createEngine({
      agents: { a: yaml('') },
      tools,
      models: { endpoints: [{ name: 'box', baseURL: provider.baseURL, protocol }] },
      keep: true,
      ...(dir !== undefined && { dir }),
    })
  engine = open()
  const { dir } = engine
  try {
    for (let n = 0; n < turns; n++) {
      const asked = { messages: [{ role: 'user', content: `Question ${n}` }] }
      const { id, result } = await engine.runtime.start('a', asked, { threadId: 't' })
      expect(await result).toMatchObject({ outcome: 'suspended' })
      if (n % 2 === 1) {
        await engine.close()
        engine = open(dir)
      }
      const [request] = only(await entriesOf(engine.store, id), 'request')
      await engine.runtime.answer(id, request!.requestId, { kind: 'approval', approved: true })
      expect(await (await engine.runtime.open(id))!.result).toMatchObject({ outcome: 'completed' })
    }
  } finally {
    await engine.close()
    rmSync(dir, { recursive: true, force: true })
  }
  return provider.requests.map(({ body }) => body as Record<string, unknown>)
}

/** The keys of a body in which messages are, and those before them. */
const places: Record<Protocol, { messages: string; front: string[] }> = {
  'openai-chat': { messages: 'messages', front: ['tools', 'model', 'tool_choice'] },
  'openai-responses': { messages: 'input', front: ['tools', 'model', 'prompt_cache_key', 'tool_choice'] },
  anthropic: { messages: 'messages', front: ['tools', 'system', 'cache_control', 'tool_choice', 'thinking'] },
  google: { messages: 'contents', front: ['tools', 'systemInstruction', 'toolConfig'] },
}

describe.each(protocols)('requests of a thread over %s', (protocol) => {
  test('begin with all of the request before, over 20 calls, approvals and restarts', async () => {
    const bodies = await converse(protocol)
    expect(bodies).toHaveLength(turns * (rounds + 1))
    const { messages, front } = places[protocol]
    const [first] = bodies
    expect(JSON.stringify(first!['tools'])).toContain('Looks')
    for (const [i, body] of bodies.entries()) {
      for (const key of front)
        expect(JSON.stringify(body[key]), `${key} of request ${i}`).toBe(JSON.stringify(first![key]))
      if (i === 0) continue
      const [before, now] = [bodies[i - 1]!, body].map((each) =>
        (each[messages] as unknown[]).map((one) => JSON.stringify(one)),
      )
      expect(now!.slice(0, before!.length), `request ${i}`).toEqual(before)
      expect(now!.length).toBeGreaterThan(before!.length)
    }
  })
})
