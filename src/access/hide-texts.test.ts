import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import { hideTexts } from './hide-texts.ts'

const at = { seq: 1, timestamp: 1, step: 'main/a/1' }
const prompt: Entry = {
  ...at,
  type: 'prompt',
  stage: 'response',
  model: 'demo:m',
  system: 'secret',
  messages: [{ role: 'user', content: 'secret' }],
  tools: [
    { name: 'server', description: 'secret', inputSchema: { secret: true } },
    { name: 'own', description: 'secret', inputSchema: { secret: true }, client: true },
    { name: 'gated', description: 'secret', inputSchema: { secret: true }, client: true, approval: true },
  ],
}

describe('hideTexts', () => {
  test('of a prompt it leaves what wires need to keep gated calls from the client: names of client tools', () => {
    expect(hideTexts([prompt])).toEqual([
      {
        ...at,
        type: 'prompt',
        stage: 'response',
        model: 'demo:m',
        messages: [],
        tools: [
          { name: 'own', inputSchema: {}, client: true },
          { name: 'gated', inputSchema: {}, client: true, approval: true },
        ],
      },
    ])
  })

  test('without client tools it leaves none; a batch without texts is the same list', () => {
    const { tools: _, ...without } = prompt as Extract<Entry, { type: 'prompt' }>
    expect(hideTexts([without])[0]).not.toHaveProperty('tools')
    const batch: Entry[] = [{ ...at, type: 'text-delta', id: 't', delta: 'x' }]
    expect(hideTexts(batch)).toBe(batch)
  })
})
