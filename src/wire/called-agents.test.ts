/** Runs whose models call agents as tools, in each wire: random ones, and the golden ones as the official clients read them. */
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai'
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { showAgUi } from '../../test/ag-ui-client.ts'
import { agUiRuns } from '../../test/ag-ui-judge.ts'
import { arbitraryAgentRun } from '../../test/arbitrary-run.ts'
import { buildRun, startPart, type Item } from '../../test/build-run.ts'
import { parseSse } from '../../test/sse.ts'
import { createClient, show } from '../../test/ui-client.ts'
import { v6Fault } from '../../test/ui-v6-chunks.ts'
import { wordsSaid } from '../../test/words-said.ts'
import type { Entry, RecordedPart } from '../part/entry.ts'
import { noUsage } from '../part/usage.ts'
import type { AgUiEvent } from './ag-ui/ag-ui-event.ts'
import { agUiWire } from './ag-ui/ag-ui.ts'
import { fromAgUiMessages } from './ag-ui/from-ag-ui-messages.ts'
import { openaiWire } from './openai/openai.ts'
import { textWire } from './text/text.ts'
import type { UiAgent } from './ui/ui-agents.ts'
import { fromClientMessages, toolAnswers } from './ui/ui-message.ts'
import { uiWire } from './ui/ui.ts'
import { lastResume, wireContract } from './wire.contract.ts'
import type { Wire } from './wire.ts'
import { often } from '../../test/support/thorough.ts'

type Chunk = { type: string; [field: string]: unknown }

const inner = 'NESTED'
const dataOf = (body: string): string[] => parseSse(new TextEncoder().encode(body)).map(({ data }) => data)
const eventsOf = (body: string) => dataOf(body).map((json) => JSON.parse(json) as AgUiEvent)
const chunksOf = (body: string) =>
  dataOf(body)
    .filter((json) => json !== '[DONE]')
    .map((json) => JSON.parse(json) as Chunk)

describe('called agents: random runs', () => {
  const runs = arbitraryAgentRun

  wireContract(textWire, { numRuns: 60, runs, judge: ({ body }) => void expect(body).not.toContain(inner) })

  wireContract(openaiWire, {
    numRuns: 60,
    runs,
    options: fc.record({ extensions: fc.subarray<'tools' | 'trace'>(['tools', 'trace']) }),
    judge: ({ body }) => void expect(body).not.toContain(inner),
  })

  wireContract(uiWire, {
    numRuns: 60,
    runs,
    options: fc.record({ ui7: fc.boolean() }),
    judge({ body, options: { ui7 } }) {
      for (const chunk of chunksOf(body)) {
        if (chunk.type !== 'data-agent') expect(JSON.stringify(chunk)).not.toContain(inner)
        if (ui7 !== true) expect(v6Fault(chunk)).toBeUndefined()
      }
      // Unless the answer was taken back, each part ends.
      const last = new Map(chunksOf(body).flatMap(({ type, id, data }) => (type === 'data-agent' ? [[id, data]] : [])))
      for (const agent of last.values()) expect(['done', 'failed', 'waiting']).toContain((agent as UiAgent).status)
    },
  })

  wireContract(agUiWire, {
    numRuns: 60,
    runs,
    options: fc.record({ old: fc.boolean() }),
    judge({ body, options: { old } }) {
      const events = eventsOf(body)
      agUiRuns(events, { isWhole: true })
      for (const event of events) {
        if (!JSON.stringify(event).includes(inner)) continue
        expect(old).not.toBe(true)
        expect(event).toHaveProperty('subagentRunId')
      }
    },
  })

  test('ag-ui: the official client keeps what subagents say apart from the answer', async () => {
    await fc.assert(
      fc.asyncProperty(runs, async (entries) => {
        const encoder = agUiWire.createEncoder({ resumedAt: lastResume(entries) })
        const body = entries.map((entry) => encoder.encode(entry)).join('')
        const { messages, error } = await showAgUi(body)
        if (error !== undefined) return
        const own = messages.filter((message) => message.subagentRunId === undefined)
        expect(JSON.stringify(own)).not.toContain(inner)
        const said = own.flatMap(({ role, content }) =>
          (role === 'assistant' || role === 'reasoning') && typeof content === 'string' && content !== ''
            ? [content]
            : [],
        )
        expect(said.sort()).toEqual(wordsSaid(entries).filter((words) => words !== '' && words !== inner))
      }),
      { numRuns: often(80) },
    )
  })
})

describe('called agents: golden runs', () => {
  const folder = new URL('golden/', import.meta.url)
  const files = readdirSync(folder).filter((file) => file.startsWith('agent-'))
  const read = (file: string) => readFileSync(new URL(file, folder), 'utf8')

  test('there are cases', () => {
    expect(files.filter((file) => file.endsWith('.ndjson')).length).toBeGreaterThanOrEqual(6)
  })

  test.each(files.filter((file) => /\.ag-ui(?:-(?:first|resumed|live))?\.txt$/u.test(file)))(
    'the verifier of AG-UI 1.0 accepts %s',
    async (file) => {
      expect((await showAgUi(read(file))).error).toBeUndefined()
      const events = eventsOf(read(file))
      agUiRuns(events, { isWhole: !file.includes('resumed') })
      if (!file.includes('handoff')) expect(events.map(({ type }) => type)).toContain('SUBAGENT_STARTED')
    },
  )

  test.each(files.filter((file) => file.endsWith('.ag-ui-old.txt')))('the client 0.0.59 accepts %s', async (file) => {
    const { error } = await showAgUi(read(file), true)
    expect(error).toBe(file.includes('stopped') ? 'Stopped by request.' : undefined)
    expect(read(file)).not.toMatch(/SUBAGENT|subagentRunId/u)
  })

  test.each(files.filter((file) => /\.ui7?\.txt$/u.test(file)))('the client of the AI SDK accepts %s', async (file) => {
    const { message, errors } = await show(read(file))
    expect(errors).toEqual([])
    const parts = message!.parts as Chunk[]
    const agents = parts.filter(({ type }) => type === 'data-agent')
    expect(agents.length).toBeGreaterThan(0)
    expect(new Set(agents.map(({ id }) => id)).size).toBe(agents.length)
    for (const { data } of agents) expect(['done', 'failed']).toContain((data as UiAgent).status)
  })

  test('a suspended subagent is started again under the same id, and its messages go on', async () => {
    const ids = (file: string) =>
      eventsOf(read(file)).flatMap((event) => (event.type === 'SUBAGENT_STARTED' ? [event.subagentRunId] : []))
    expect(ids('agent-approval.ag-ui-resumed.txt')).toEqual(ids('agent-approval.ag-ui-first.txt'))
    const { messages } = await showAgUi(read('agent-approval.ag-ui.txt'))
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length)
    expect(messages.filter((message) => message.subagentRunId === undefined).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
    ])
  })

  test('an approval inside names the inner tool and the chain of agents', () => {
    const source = read('agent-approval.ndjson').trimEnd().split('\n')
    const entries = source.map((line) => JSON.parse(line) as Entry)
    const finished = eventsOf(read('agent-approval.ag-ui-first.txt')).at(-1)
    expect(finished).toMatchObject({
      outcome: {
        interrupts: [
          {
            id: 'req_1',
            message: 'The tool upload needs an approval (desk > writer > publish).',
            metadata: { toolName: 'upload', input: { path: 'it.md' }, agents: ['desk', 'writer', 'publish'] },
            subagentRunId: 'run_01:desk/2/write/2',
          },
        ],
      },
    })
    const ui = chunksOf(read('agent-approval.ui-first.txt'))
    expect(ui.find(({ toolName }) => toolName === 'upload')).toMatchObject({
      providerMetadata: { millrace: { agents: ['desk', 'writer', 'publish'], parentToolCallId: 'call_2' } },
    })
    const handOver = [{ ...entries[0]!, handOver: true } as Entry, ...entries.slice(1)]
    const encoder = openaiWire.createEncoder()
    const body = handOver.map((entry) => encoder.encode(entry)).join('')
    expect(body).toContain(
      'upload({\\"path\\":\\"it.md\\"}) (desk > writer > publish): POST /api/runs/run_01/requests/req_1',
    )
    expect(body).toContain('"agents":["desk","writer","publish"]')
  })
})

describe('called agents: after a crash', () => {
  const at = (step: string, ...parts: RecordedPart[]): Item[] => parts.map((part) => ({ step, part }))
  const modelCall = (attempt = 1): RecordedPart => ({ type: 'step-start', stepType: 'model-call', attempt })
  const called = (attempt = 1): RecordedPart => {
    const names = { toolCallId: 'c', toolName: 'helper', agent: 'helper', pipeline: 'workflow: []' }
    return { type: 'step-start', stepType: 'call-agent', kind: 'tool-call', attempt, ...names }
  }
  const finished: RecordedPart = { type: 'step-finish', duration: 1 }
  const call = (id: string, toolName: string): RecordedPart => ({
    type: 'tool-call',
    toolCallId: id,
    toolName,
    input: '{}',
  })
  const text = (id: string, delta: string): RecordedPart[] => [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta },
  ]
  const inside = (attempt: number, id: string): Item[] => [
    ...at('main/a/2/s', { type: 'step-start', stepType: 'llm', attempt: 1 }),
    ...at('main/a/2/s/1', modelCall(attempt), ...text(id, 'half'), call(`k${id}`, 'look')),
  ]
  const begun: Item[] = [
    ...at('', startPart),
    ...at('main/a', { type: 'step-start', stepType: 'llm', attempt: 1, answer: true }),
    ...at('main/a/1', modelCall(), call('c', 'helper'), finished),
    ...at('main/a/2', called()),
    ...inside(1, 't1'),
  ]
  const ended: Item[] = [
    ...at('main/a/2', { type: 'tool-result', toolCallId: 'c', toolName: 'helper', result: 'ok' }, finished),
    ...at('main/a', finished),
    ...at('', { type: 'answer-end', finishReason: 'stop', usage: noUsage }),
  ]
  const encoded = (items: Item[], wire: Pick<Wire, 'createEncoder'> = agUiWire) => {
    const encoder = wire.createEncoder()
    return buildRun(items)
      .map((entry) => encoder.encode(entry))
      .join('')
  }
  const again: Item[] = [
    ...begun,
    ...at('main/a/2/s/1', { type: 'step-reset', attempt: 1 }, modelCall(2), ...text('t2', 'whole')),
    ...at('main/a/2/s/1', { type: 'text-end', id: 't2' }, finished),
    ...at('main/a/2/s', finished),
    ...ended,
  ]

  test('a subagent begins a model call again: what it sent is closed, and the answer goes on', async () => {
    const events = eventsOf(encoded(again))
    agUiRuns(events, { isWhole: true })
    const texts = events.flatMap((event) => (event.type === 'TEXT_MESSAGE_START' ? [event.messageId] : []))
    expect(new Set(texts).size).toBe(2)
    expect(events.find(({ type }) => type === 'TOOL_CALL_RESULT')).toMatchObject({
      metadata: { isError: true, outcome: 'aborted' },
      subagentRunId: 'run-1:a/2',
    })
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect((await showAgUi(encoded(again))).error).toBeUndefined()
    const { errors } = await show(encoded(again, uiWire))
    expect(errors).toEqual([])
  })

  test('a call that begins again is another subagent', () => {
    const events = eventsOf(
      encoded([
        ...begun,
        ...at('main/a/2', { type: 'step-reset', attempt: 1 }, called(2)),
        ...inside(1, 't2'),
        ...at('main/a/2/s/1', { type: 'text-end', id: 't2' }),
        ...at('main/a/2/s/1', { type: 'tool-result', toolCallId: 'kt2', toolName: 'look', result: 1 }, finished),
        ...at('main/a/2/s', finished),
        ...ended,
      ]),
    )
    agUiRuns(events, { isWhole: true })
    expect(
      events.flatMap((event) => (event.type.startsWith('SUBAGENT') ? [[event.type, subagentOf(event)]] : [])),
    ).toEqual([
      ['SUBAGENT_STARTED', 'run-1:a/2'],
      ['SUBAGENT_ERROR', 'run-1:a/2'],
      ['SUBAGENT_STARTED', 'run-1:a/2~2'],
      ['SUBAGENT_FINISHED', 'run-1:a/2~2'],
    ])
    expect(events.at(-1)?.type).toBe('RUN_FINISHED')
  })

  test('a result that comes before the ends inside closes these first, nested agents too', () => {
    const stopped: Item[] = [
      ...begun,
      ...at('main/a/2/s/2', { ...called(), toolCallId: 'kt1' } as RecordedPart),
      ...at('main/a/2/s/2/n', { type: 'step-start', stepType: 'llm', attempt: 1 }),
      ...at('main/a/2', { type: 'tool-result', toolCallId: 'c', toolName: 'helper', result: 'stop', isError: true }),
    ]
    const events = eventsOf(encoded(stopped))
    const order = events.slice(events.findIndex(({ type }) => type === 'TEXT_MESSAGE_END')).map(({ type }) => type)
    expect(order).toEqual([
      'TEXT_MESSAGE_END',
      'STEP_FINISHED',
      'STEP_FINISHED',
      'STEP_FINISHED',
      'SUBAGENT_ERROR',
      'SUBAGENT_ERROR',
      'TOOL_CALL_RESULT',
    ])
  })

  test('openai: a client tool of a called agent is no call for the client', () => {
    const tools = [{ name: 'look', inputSchema: {}, client: true as const }]
    const prompt: RecordedPart = { type: 'prompt', stage: 's', model: 'm', messages: [], tools }
    const items = again.map(({ step, part }): Item => {
      return { step, part: part.type === 'run-start' ? { ...part, handOver: true } : part }
    })
    const place = items.findIndex(({ part }) => part.type === 'text-start')
    const body = encoded([...items.slice(0, place), ...at('main/a/2/s/1', prompt), ...items.slice(place)], openaiWire)
    expect(body).not.toContain('look')
    expect(body).toContain('"finish_reason":"stop"')
  })
})

const subagentOf = (event: AgUiEvent) => (event as { subagentRunId?: string }).subagentRunId

describe('called agents: whole conversations of useChat', () => {
  const golden = (file: string) => readFileSync(new URL(`golden/${file}`, import.meta.url), 'utf8')

  test('an approval that an inner agent asks for is sent back by itself, and the outer call gets its result', async () => {
    const { chat, errors, posted } = createClient(
      [golden('agent-approval.ui-first.txt'), golden('agent-approval.ui-resumed.txt')],
      { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses },
    )
    await chat.sendMessage({ text: 'Publish it.' })
    await chat.addToolApprovalResponse({ id: 'req_1', approved: true })
    await expect.poll(() => JSON.stringify(chat.lastMessage)).toContain('It is published.')
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(toolAnswers(posted[1]!.messages)).toEqual([
      { toolCallId: 'call_3', answer: { kind: 'approval', approved: true } },
    ])
    const [outer, asked] = (chat.lastMessage!.parts as Chunk[]).filter(({ type }) => type.startsWith('tool-'))
    expect(outer).toMatchObject({ type: 'tool-writer', state: 'output-available', output: 'Published.' })
    expect(asked).toMatchObject({ type: 'tool-upload', state: 'output-available' })
    // The conversation has the outer call alone.
    const told = JSON.stringify(fromClientMessages(chat.messages))
    expect(told).toContain('"toolName":"writer"')
    expect(told).not.toMatch(/upload|call_3|I upload it|online/u)
  })

  test('a client tool that an inner agent calls is answered by itself', async () => {
    const { chat, errors, posted } = createClient(
      [golden('agent-client-tool.ui-first.txt'), golden('agent-client-tool.ui-resumed.txt')],
      {
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall({ toolCall: { toolCallId, toolName } }) {
          // Not awaited: the client's queue of jobs waits for this callback.
          if (toolName === 'getPlace') void chat.addToolOutput({ tool: toolName, toolCallId, output: { lat: 53 } })
        },
      },
    )
    await chat.sendMessage({ text: 'Where am I?' })
    await expect.poll(() => JSON.stringify(chat.lastMessage)).toContain('You are at the mill.')
    await expect.poll(() => chat.status).toBe('ready')
    expect(errors).toEqual([])
    expect(toolAnswers(posted[1]!.messages)).toContainEqual({
      toolCallId: 'call_3',
      answer: { kind: 'tool', output: { lat: 53 } },
    })
    expect(JSON.stringify(fromClientMessages(chat.messages))).not.toMatch(/getPlace|call_3/u)
  })

  test('messages of subagents that an AG-UI client sends back are not part of the conversation', async () => {
    const { messages } = await showAgUi(golden('agent-tools.ag-ui.txt'))
    expect(messages.some((message) => message.subagentRunId !== undefined)).toBe(true)
    const told = JSON.stringify(fromAgUiMessages(messages))
    expect(told).toContain('"toolName":"write_article"')
    expect(told).not.toMatch(/call_4|publish/u)
  })
})
