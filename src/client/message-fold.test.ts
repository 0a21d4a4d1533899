import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Entry } from '../part/entry.ts'
import type { AgentTrack, MessagePart, ToolPart } from './agent-message.ts'
import { createMessageFold } from './message-fold.ts'

const golden = (name: string) =>
  readFileSync(new URL(`../wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

const isTool = (part: MessagePart): part is ToolPart => part.type === 'tool'
const outline = (parts: readonly MessagePart[]): unknown[] =>
  parts.map((part) => {
    if (!isTool(part)) return 'text' in part ? part.text : part.type
    return [part.toolName, part.state, ...(part.agent === undefined ? [] : [trackOf(part.agent)])]
  })
const trackOf = ({ agent, status, parts }: AgentTrack) => ({ agent, status, parts: outline(parts) })

function read(name: string, isLast: (entry: Entry) => boolean = () => false) {
  const fold = createMessageFold('run_01')
  for (const entry of golden(name)) {
    fold.apply(entry)
    if (isLast(entry)) break
  }
  return { fold, parts: fold.messages().at(-1)!.parts }
}

describe('message fold: agents that a model calls', () => {
  test('their work is in the part of the call, and no part of the answer', () => {
    expect(outline(read('agent-tool').parts)).toEqual([
      'Let me ask.',
      [
        'researcher',
        'output-available',
        {
          agent: 'researcher',
          status: 'done',
          parts: [['search', 'output-available'], '2024 minus 1862.', 'Built in 1862, so it is 162 years old.'],
        },
      ],
      'The mill is 162 years old.',
    ])
  })

  test('calls at once and below each other keep apart', () => {
    expect(outline(read('agent-tools').parts)).toEqual([
      ['researcher', 'output-available', { agent: 'researcher', status: 'done', parts: ['The mill is old.'] }],
      [
        'write_article',
        'output-available',
        {
          agent: 'writer',
          status: 'done',
          parts: [
            ['publish', 'output-available', { agent: 'publish', status: 'done', parts: ['Published.'] }],
            '{"title":"Mill"}',
          ],
        },
      ],
      ['checker', 'output-error', { agent: 'checker', status: 'failed', parts: ['I could not '] }],
      'Done.',
    ])
  })

  test('an approval inside is at the inner call, with the chain, and all around it wait', () => {
    const { fold, parts } = read('agent-approval', ({ type }) => type === 'suspend')
    expect(fold.requests).toMatchObject([{ toolName: 'upload', agents: ['desk', 'writer', 'publish'] }])
    expect(outline(parts)).toEqual([
      [
        'writer',
        'input-available',
        {
          agent: 'writer',
          status: 'waiting',
          parts: [
            [
              'publish',
              'input-available',
              { agent: 'publish', status: 'waiting', parts: ['I upload it.', ['upload', 'approval-requested']] },
            ],
          ],
        },
      ],
    ])
    expect(JSON.stringify(read('agent-approval').parts)).not.toContain('waiting')
  })

  test('what takes over gives the answer', () => {
    expect(outline(read('agent-handoff').parts)).toEqual([
      'I hand you over.',
      ['transfer_to_refunds', 'output-available'],
      ['researcher', 'output-available', { agent: 'researcher', status: 'done', parts: ['Order 7, 20 euros.'] }],
      'You get 20 euros.',
    ])
  })

  test('parts that do not change stay the same objects', () => {
    const fold = createMessageFold('run_01')
    let before: readonly MessagePart[] = []
    for (const entry of golden('agent-tools')) {
      fold.apply(entry)
      const now = fold.messages().at(-1)!.parts
      if (entry.type === 'text-delta' && entry.step === 'main/desk/2/find/1') {
        expect(now[0]).not.toBe(before[0])
        expect(now.slice(1)).toEqual(before.slice(1))
        for (const [i, part] of now.slice(1).entries()) expect(part).toBe(before[i + 1])
      }
      before = now
    }
    expect(fold.messages()).toBe(fold.messages())
  })
})
