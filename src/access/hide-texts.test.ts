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
  settings: { stopSequences: ['secret'] },
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

  // A reader that begins in the middle of a log gets no `run-start` with them.
  test.each<object>([
    { type: 'run-start', runId: 'r', agent: 'a', threadId: 't', protocol: 'api', input: {}, pipeline: 'secret' },
    { type: 'step-start', stepType: 'call-agent', attempt: 1, agent: 'b', pipeline: 'secret' },
    { type: 'resume', protocol: 'api', agent: 'b', pipeline: 'secret' },
    prompt,
  ])('hides the texts of an entry that comes alone: %j', (part) => {
    const entry = { ...at, ...part } as Entry
    expect(JSON.stringify(hideTexts([entry]))).not.toContain('secret')
    // What others read is as it was.
    expect(JSON.stringify(entry)).toContain('secret')
  })

  test('of errors and warnings, what is for operators alone is left out', () => {
    const error = { code: 'step-failed', message: 'It failed.', detail: 'secret' }
    const usage = { source: 'reported', inputTokens: 1, outputTokens: 1 } as const
    const batch: Entry[] = [
      { ...at, type: 'step-finish', duration: 1, error },
      { ...at, type: 'retry', attempt: 2, delay: 0, error },
      { ...at, type: 'error', error },
      { ...at, type: 'warning', code: 'tool-failed', message: 'secret' },
      { ...at, type: 'cli-output', stream: 'stderr', raw: 'secret' },
      { ...at, type: 'run-end', outcome: 'failed', usage, error },
    ]
    for (const entry of batch) expect(JSON.stringify(hideTexts([entry]))).not.toContain('secret')
    expect(hideTexts(batch)[0]).toEqual({ ...batch[0], error: { code: 'step-failed', message: 'It failed.' } })
    const others: Entry[] = [{ ...at, type: 'warning', code: 'ignored', message: 'It is ignored.' }]
    expect(hideTexts(others)).toBe(others)
  })

  test('without client tools it leaves none; a batch without texts is the same list', () => {
    const { tools: _, ...without } = prompt as Extract<Entry, { type: 'prompt' }>
    expect(hideTexts([without])[0]).not.toHaveProperty('tools')
    const batch: Entry[] = [{ ...at, type: 'text-delta', id: 't', delta: 'x' }]
    expect(hideTexts(batch)).toBe(batch)
  })
})
