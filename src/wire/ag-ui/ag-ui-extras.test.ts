/** Files and sources of an answer. AG-UI has events for neither, so they are CUSTOM: the second test fails when a version has one. */
import { readFileSync } from 'node:fs'
import { HttpAgent } from '@ag-ui/client'
import { EventType, PROTOCOL_VERSION } from '@ag-ui/core'
import * as schemas from '@ag-ui/core/schemas'
import { describe, expect, test } from 'vitest'
import { showAgUi } from '../../../test/ag-ui-client.ts'
import { buildRun, startPart } from '../../../test/build-run.ts'
import type { RecordedPart } from '../../part/entry.ts'
import { noUsage } from '../../part/usage.ts'
import { agUiWire } from './ag-ui.ts'

const extras = [
  { type: 'source', sourceType: 'url', id: 's1', url: 'https://a.test/', title: 'A' },
  { type: 'source', sourceType: 'document', id: 's2', mediaType: 'application/pdf', title: 'B', filename: 'b.pdf' },
  { type: 'file', mediaType: 'image/png', data: 'AAAA' },
  { type: 'file', mediaType: 'audio/wav', data: { url: 'https://a.test/a.wav' } },
  { type: 'reasoning-file', mediaType: 'image/png', data: 'AAAA' },
] as unknown as RecordedPart[]

function body(): string {
  const answering = { type: 'step-start', stepType: 'llm', attempt: 1, answer: true } as const
  const modelCall = { type: 'step-start', stepType: 'model-call', attempt: 1 } as const
  const said: RecordedPart[] = [
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'See.' },
    { type: 'text-end', id: 't' },
  ]
  const start = { ...startPart, labels: { runId: 'run-1' } } as RecordedPart
  const entries = buildRun([
    { step: '', part: start },
    { step: 'main/a', part: answering },
    { step: 'main/a/1', part: modelCall },
    ...[...said, ...extras].map((part) => ({ step: 'main/a/1', part })),
    { step: '', part: { type: 'answer-end', finishReason: 'stop', usage: noUsage } },
  ])
  const encoder = agUiWire.createEncoder()
  return entries.map((entry) => encoder.encode(entry)).join('')
}

describe('AG-UI wire: extras', () => {
  test('files and sources of an answer reach AG-UI’s own client whole, as CUSTOM events beside the text', async () => {
    const fetch = () => Promise.resolve(new Response(body(), { headers: { 'content-type': 'text/event-stream' } }))
    const agent = new HttpAgent({ url: 'http://localhost/', threadId: 'thread-1', fetch })
    const read: object[] = []
    await agent.runAgent(
      { runId: 'run-1' },
      { onCustomEvent: ({ event: { name, value } }) => void read.push({ type: name, ...value }) },
    )
    expect(read).toEqual(extras)
    for (const old of [false, true]) {
      expect((await showAgUi(body(), old)).messages.filter(({ role }) => role === 'assistant')).toMatchObject([
        { content: 'See.' },
      ])
    }
  })

  test('this version of AG-UI has no event and no message of an agent for a file or a source, and the docs say so', () => {
    const doc = readFileSync(new URL('../../../docs/ag-ui.md', import.meta.url), 'utf8')
    expect(doc).toContain(`AG-UI ${PROTOCOL_VERSION} has no event for a file or a source`)
    // What carries an answer is these events, and text.
    expect(Object.values(EventType).sort()).toEqual([
      'ACTIVITY_DELTA',
      'ACTIVITY_SNAPSHOT',
      'CUSTOM',
      'MESSAGES_SNAPSHOT',
      'RAW',
      'REASONING_ENCRYPTED_VALUE',
      'REASONING_END',
      'REASONING_MESSAGE_CHUNK',
      'REASONING_MESSAGE_CONTENT',
      'REASONING_MESSAGE_END',
      'REASONING_MESSAGE_START',
      'REASONING_START',
      'RUN_ERROR',
      'RUN_FINISHED',
      'RUN_STARTED',
      'STATE_DELTA',
      'STATE_SNAPSHOT',
      'STEP_FINISHED',
      'STEP_STARTED',
      'SUBAGENT_ERROR',
      'SUBAGENT_FINISHED',
      'SUBAGENT_STARTED',
      'TEXT_MESSAGE_CHUNK',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'TEXT_MESSAGE_START',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_CHUNK',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT',
      'TOOL_CALL_START',
    ])
    const base = ['metadata', 'rawEvent', 'subagentRunId', 'timestamp', 'type']
    const own = (schema: { shape: object }) => Object.keys(schema.shape).filter((name) => !base.includes(name))
    expect(
      [
        own(schemas.TextMessageStartEventSchema),
        own(schemas.TextMessageContentEventSchema),
        own(schemas.TextMessageEndEventSchema),
        own(schemas.AssistantMessageSchema),
      ].map((names) => names.sort()),
    ).toEqual([
      ['messageId', 'name', 'role'],
      ['delta', 'messageId'],
      ['messageId'],
      ['content', 'encryptedValue', 'id', 'name', 'role', 'toolCalls'],
    ])
    // Users and tools may say images and documents; agents only text.
    const image = { type: 'image', source: { type: 'url', value: 'https://a.test/a.png' } }
    const accepts = (schema: { safeParse(value: unknown): { success: boolean } }, message: object) =>
      schema.safeParse({ id: 'm', content: [image], ...message }).success
    expect([
      accepts(schemas.UserMessageSchema, { role: 'user' }),
      accepts(schemas.ToolMessageSchema, { role: 'tool', toolCallId: 'c' }),
      accepts(schemas.AssistantMessageSchema, { role: 'assistant' }),
    ]).toEqual([true, true, false])
  })
})
