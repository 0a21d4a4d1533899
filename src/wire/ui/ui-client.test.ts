/** Whole conversations of `useChat`'s own class with our bytes. */
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { buildRun, startPart } from '../../../test/build-run.ts'
import type { Entry } from '../../part/entry.ts'
import { fromClientMessages, toolAnswers } from './ui-message.ts'
import { createClient, show } from '../../../test/ui-client.ts'
import { uiWire } from './ui.ts'

const golden = (file: string) => readFileSync(new URL(`../golden/${file}`, import.meta.url), 'utf8')
const textPart = (text: string) => expect.objectContaining({ type: 'text', text, state: 'done' })

describe('UI wire: official client', () => {
  test('a client tool: the client runs it, sends the answer, and the same message goes on', async () => {
    const { chat, errors, posted } = createClient(
      [golden('client-tool.ui-first.txt'), golden('client-tool.ui-resumed.txt')],
      {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall({ toolCall: { toolCallId, toolName } }) {
          // Not awaited: the client's queue of jobs waits for this callback.
          void chat.addToolOutput({ tool: toolName, toolCallId, output: 'red' })
        },
      },
    )
    await chat.sendMessage({ text: 'Pick one' })
    await expect.poll(() => chat.messages.at(-1)?.parts).toContainEqual(textPart('You picked red.'))
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(chat.messages.map(({ role, id }) => role === 'assistant' && id)).toEqual([false, 'run_01'])
    expect(chat.lastMessage!.parts.map(({ type }) => type)).toEqual([
      'step-start',
      'tool-pickColour',
      'step-start',
      'text',
    ])
    expect(posted).toHaveLength(2)
    expect(toolAnswers(posted[0]!.messages)).toEqual([])
    expect(toolAnswers(posted[1]!.messages)).toEqual([
      { toolCallId: 'call_1', answer: { kind: 'tool', output: 'red' } },
    ])
    expect(fromClientMessages(posted[1]!.messages).map(({ role, id }) => [role, id])).toEqual([
      ['user', chat.messages[0]!.id],
      ['assistant', 'run_01'],
      ['tool', 'run_01'],
    ])
  })

  test('approvals: one given, one refused', async () => {
    const { chat, errors, posted } = createClient(
      [golden('approval.ui-first.txt'), golden('approval.ui-resumed.txt')],
      {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      },
    )
    await chat.sendMessage({ text: 'Delete both' })
    expect(chat.lastMessage!.parts).toMatchObject([
      {},
      { state: 'approval-requested' },
      { state: 'approval-requested' },
    ])
    await chat.addToolApprovalResponse({ id: 'req_1', approved: true })
    await chat.addToolApprovalResponse({ id: 'req_2', approved: false, reason: 'I need b.' })
    await expect.poll(() => chat.messages.at(-1)?.parts).toContainEqual(textPart('a is gone, b stays.'))
    expect(errors).toEqual([])
    expect(chat.lastMessage!.parts).toMatchObject([
      {},
      { state: 'output-available' },
      { state: 'output-denied' },
      {},
      {},
    ])
    expect(toolAnswers(posted[1]!.messages)).toEqual([
      { toolCallId: 'call_1', answer: { kind: 'approval', approved: true } },
      { toolCallId: 'call_2', answer: { kind: 'approval', approved: false, reason: 'I need b.' } },
    ])
  })

  test.each(['client-tool', 'approval'])(
    '%s: a replay from the start shows the same as living through it',
    async (name) => {
      const { message } = await show(golden(`${name}.ui.txt`))
      const lived = createClient([golden(`${name}.ui-first.txt`), golden(`${name}.ui-resumed.txt`)])
      await lived.chat.sendMessage({ text: 'Hi' })
      await lived.chat.sendMessage()
      expect(lived.errors).toEqual([])
      const strip = (text: unknown) => JSON.parse(JSON.stringify(text)) as unknown
      expect(strip(message)).toEqual(strip(lived.chat.lastMessage))
    },
  )

  test('a server abort does not make the client send again by itself, though its call will never have an output', async () => {
    for (const file of ['abort-midway.ui.txt', 'abort-midway.ui7.txt']) {
      const { chat, errors, posted } = createClient([golden(file)], {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
      })
      await chat.sendMessage({ text: 'Hi' })
      expect(chat.status).toBe('ready')
      expect(errors).toEqual([])
      expect(posted).toHaveLength(1)
      expect(chat.lastMessage!.parts).toContainEqual(textPart('Let me see.'))
    }
  })

  test('a failure is an error at the client, and the earlier parts are kept and finished', async () => {
    const { message, status, errors } = await show(golden('error-midway.ui.txt'))
    expect(status).toBe('error')
    expect(errors).toEqual(['Step answer (llm): the connection was closed.'])
    expect(message!.parts).toContainEqual(textPart('So far so '))
  })

  test('a failure of the server itself finishes the open parts', async () => {
    const entries = golden('plain-text.ndjson')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry)
    const encoder = uiWire.createEncoder()
    const sent = entries.slice(0, 7).map((entry) => encoder.encode(entry))
    const { message, errors } = await show(sent.join('') + encoder.fail({ code: 'disk', message: 'The disk is full.' }))
    expect(errors).toEqual(['The disk is full.'])
    expect(message!.parts).toContainEqual(textPart('Hello'))
  })

  test('a crash: version 7 shows the second attempt only, version 6 is told, a fresh replay knows nothing of it', async () => {
    const seven = await show(golden('reset.ui7.txt'))
    expect(seven.errors).toEqual([])
    expect(seven.message!.parts.map((part) => part.type === 'text' && part.text)).toEqual([false, 'The answer is 84.'])
    const six = await show(golden('reset.ui.txt'))
    expect(six.errors).toHaveLength(1)
    expect(six.message!.parts).toContainEqual(textPart('The answer is forty-'))
  })

  test('the message is there before the first token, with the id of the run', async () => {
    const encoder = uiWire.createEncoder()
    const [start] = buildRun([{ step: '', part: startPart }])
    expect(encoder.encode(start!)).toBe('data: {"type":"start","messageId":"run-1"}\n\n')
  })
})
