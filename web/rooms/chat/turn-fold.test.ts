import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mergeDeltas, type Entry } from '../../../src/part/entry.ts'
import { createRunFold } from '../../../src/fold/run-fold.ts'
import { createTurnFold, turnTypes } from './turn-fold.ts'
import { answerText, type Item, type ChatTurn } from './turn.ts'

const golden = (name: string): Entry[] =>
  readFileSync(new URL(`../../../src/wire/golden/${name}.ndjson`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry)

function fold(entries: readonly Entry[]): ChatTurn {
  const made = createTurnFold()
  for (const entry of entries) made.apply(entry)
  return made.read()!
}

const kinds = ({ items }: ChatTurn) => items.map((item) => (item.kind === 'tool' ? `tool ${item.name}` : item.kind))

test.each([
  'plain-text',
  'reasoning',
  'server-tool',
  'client-tool',
  'approval',
  'reset',
  'router',
  'parallel-answers',
  'error-midway',
  'abort-midway',
  'max-steps',
  'long-outputs',
  'cli-agent',
  'handed-over',
  'agent-tool',
  'agent-tools',
  'agent-approval',
  'agent-client-tool',
  'agent-handoff',
  'agent-stopped',
])('%s: the turn says what the view of the run says, merged or not, at every entry', (name) => {
  const entries = golden(name)
  const view = createRunFold()
  const turns = createTurnFold()
  for (const entry of entries) {
    view.apply(entry)
    turns.apply(entry)
    const [shown, expected] = [turns.read()!, view.view()]
    expect(shown.status).toBe(expected.status)
    expect(shown.lastSeq).toBe(expected.lastSeq)
  }
  const [turn, expected] = [turns.read()!, view.view()]
  expect({ ...fold(mergeDeltas(entries)), firstTokenAt: turn.firstTokenAt }).toEqual(turn)
  // The chat reads nothing else.
  const read = fold(entries.filter(({ type }) => turnTypes.includes(type)))
  expect({ ...read, lastSeq: turn.lastSeq }).toEqual(turn)
  expect(turn.error).toEqual(expected.error)
  expect(turn.usage ?? expected.usage).toEqual(expected.usage)
  const calls = expected.messages.flatMap(({ content }) =>
    typeof content === 'string'
      ? []
      : content.flatMap((part) => ('type' in part && part.type === 'tool-call' ? [part.toolCallId] : [])),
  )
  const cards = turn.items.flatMap((item) => (item.kind === 'tool' ? [item.callId] : []))
  for (const call of calls) expect(cards).toContain(call)
})

test('a plain answer is its text; a stopped one is closed', () => {
  const turn = fold(golden('plain-text'))
  const view = createRunFold()
  for (const entry of golden('plain-text')) view.apply(entry)
  expect(answerText(turn)).toBe(view.view().text)
  expect(kinds(turn)).toEqual(['text', 'step'])
  expect(fold(golden('abort-midway')).items.every((item) => item.kind !== 'text' || !item.isOpen)).toBe(true)
})

const at = (seq: number, entry: object, step = 'main/answer/1') =>
  ({ seq, timestamp: seq * 1000, step, ...entry }) as Entry
const begin: Entry[] = [
  at(
    1,
    {
      type: 'run-start',
      runId: 'r',
      agent: 'a',
      pipeline: '',
      threadId: 't',
      protocol: 'api',
      input: {
        messages: [
          { role: 'user', content: 'old' },
          { role: 'assistant', content: 'x' },
          { role: 'user', content: 'new' },
        ],
        topic: 1,
      },
    },
    '',
  ),
  at(2, { type: 'step-start', stepType: 'memory', kind: 'memory', attempt: 1 }, 'main/recall'),
  at(3, { type: 'step-finish', duration: 5 }, 'main/recall'),
  at(4, { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true }, 'main/answer'),
  at(5, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: 1 }),
]

test('what is new of the messages was asked; other keys are values; other steps are one line', () => {
  const turn = fold(begin)
  expect(turn.asked).toEqual([{ role: 'user', content: 'new' }])
  expect(turn.input).toEqual({ topic: 1 })
  expect(turn.items).toMatchObject([{ kind: 'step', name: 'recall', stepType: 'memory', duration: 5 }])
})

test('a step that leads to the answer is not shown beside it', () => {
  const inner: Entry[] = [
    begin[0]!,
    at(2, { type: 'step-start', stepType: 'parallel', kind: 'parallel', attempt: 1 }, 'main/both'),
    at(3, { type: 'step-start', stepType: 'llm', kind: 'tool-loop', attempt: 1, answer: true }, 'main/both/a'),
  ]
  expect(kinds(fold(inner.slice(0, 2)))).toEqual(['step'])
  expect(kinds(fold(inner))).toEqual([])
})

test('arguments grow, an approval stands on the card of its call, the result and its duration come', () => {
  const made = createTurnFold()
  const card = () => made.read()!.items.find((item): item is Extract<Item, { kind: 'tool' }> => item.kind === 'tool')!
  for (const entry of begin) made.apply(entry)
  made.apply(at(6, { type: 'tool-input-start', id: 'c', toolName: 'search' }))
  made.apply(at(7, { type: 'tool-input-delta', id: 'c', delta: '{"q"' }))
  expect(card()).toMatchObject({ input: '{"q"', isInputOpen: true })
  made.apply(at(8, { type: 'tool-call', toolCallId: 'c', toolName: 'search', input: '{"q":1}' }))
  const request = {
    type: 'request',
    requestId: 'q',
    kind: 'approval',
    toolCallId: 'c',
    toolName: 'search',
    input: { q: 1 },
    deadline: 1,
  }
  made.apply(at(9, request, 'main/answer/2'))
  made.apply(at(10, { type: 'suspend', requests: ['q'] }, ''))
  expect(made.read()!.status).toBe('suspended')
  expect(card().ask?.response).toBeUndefined()
  made.apply(
    at(
      11,
      { type: 'response', requestId: 'q', outcome: 'answered', answer: { kind: 'approval', approved: true } },
      'main/answer/2',
    ),
  )
  made.apply(
    at(
      12,
      { type: 'step-start', stepType: 'tool-call', kind: 'tool-call', attempt: 1, toolCallId: 'c', toolName: 'search' },
      'main/answer/3',
    ),
  )
  made.apply(
    at(13, { type: 'tool-result', toolCallId: 'c', toolName: 'search', result: 1, preliminary: true }, 'main/answer/3'),
  )
  expect(card().endedAt).toBeUndefined()
  made.apply(at(15, { type: 'tool-result', toolCallId: 'c', toolName: 'search', result: 2 }, 'main/answer/3'))
  expect(card()).toMatchObject({ result: { value: 2, isPreliminary: false }, startedAt: 12_000, endedAt: 15_000 })
  expect(card().ask?.response?.answer).toMatchObject({ approved: true })
})

test('an entry that comes twice counts once; items that did not change stay the same', () => {
  const made = createTurnFold()
  for (const entry of begin) made.apply(entry)
  made.apply(at(6, { type: 'text-start', id: 'b' }))
  made.apply(at(7, { type: 'text-delta', id: 'b', delta: 'x' }))
  const before = made.read()!
  made.apply(at(7, { type: 'text-delta', id: 'b', delta: 'x' }))
  expect(made.read()).toBe(before)
  made.apply(at(8, { type: 'text-delta', id: 'b', delta: 'y' }))
  expect(answerText(made.read()!)).toBe('xy')
  expect(answerText(before)).toBe('x')
  expect(made.read()!.items[0]).toBe(before.items[0])
})

test('the time of an answer leaves out what it waited for somebody, and of a fork what its source did', () => {
  const usage = { outputTokens: 30, source: 'reported' }
  const rest = [
    at(10, { type: 'suspend', requests: ['q'] }, ''),
    at(70, { type: 'resume', protocol: 'api' }, ''),
    at(75, { type: 'run-end', outcome: 'completed', usage, cost: 0.5 }, ''),
  ]
  const started = begin[0]!.timestamp
  expect(fold([...begin, ...rest])).toMatchObject({ workedMs: 75_000 - 60_000 - started, cost: 0.5 })
  const forked = { ...begin[0], forkedFrom: { runId: 'r', seq: 9, at: 72_000 } } as Entry
  expect(fold([forked, ...begin.slice(1), ...rest]).workedMs).toBe(3000)
  expect(fold([...begin, rest[0]!]).workedMs).toBeUndefined()
})

test('a fork shows what it was asked itself; for another run, what came while it waited changes nothing', () => {
  const input = { messages: [{ role: 'user', content: 'And in Rome?' }], city: 'Rome' }
  const resume = at(70, { type: 'resume', protocol: 'api', input, agent: 'other' }, '')
  const rest = [at(10, { type: 'suspend', requests: [] }, ''), resume]
  const forked = { ...begin[0], forkedFrom: { runId: 'r', seq: 9, at: 72_000 } } as Entry
  const turn = fold([forked, ...begin.slice(1), ...rest])
  expect(turn).toMatchObject({ asked: input.messages, input: { city: 'Rome' }, agent: 'other' })
  expect(fold([...begin, ...rest]).asked).toEqual(fold([...begin]).asked)
})

test('a turn has the YAML that it ran with instead of the file; a fork that of its own', () => {
  const resume = (more: object) =>
    at(70, { type: 'resume', protocol: 'api', agent: 'a', pipeline: 'forked', ...more }, '')
  const forked = { ...begin[0], pipeline: 'own', ownPipeline: true, forkedFrom: { runId: 'r', seq: 9 } } as Entry
  const yaml = (...entries: Entry[]) => fold([...entries, ...begin.slice(1)]).yaml
  expect([yaml(begin[0]!), yaml(forked)]).toEqual([undefined, 'own'])
  const after = (more: object) => fold([forked, ...begin.slice(1), resume(more)]).yaml
  expect([after({ ownPipeline: true }), after({}), after({ agent: undefined })]).toEqual(['forked', undefined, 'own'])
})

test('the work of an agent that a model calls is in the card of its call, and so on below it', () => {
  const shown = (items: readonly Item[]): unknown[] =>
    items.map((item) => {
      if (item.kind === 'text' || item.kind === 'reasoning') return item.text
      if (item.kind !== 'tool') return item.kind
      return item.agent === undefined ? item.name : { [item.agent.id]: shown(item.agent.items) }
    })
  expect(shown(fold(golden('agent-tools')).items)).toEqual([
    { researcher: ['The mill is old.'] },
    { writer: [{ publish: ['Published.'] }, '{"title":"Mill"}'] },
    { checker: ['I could not '] },
    'Done.',
  ])
  expect(shown(fold(golden('agent-handoff')).items)).toEqual([
    'I hand you over.',
    'transfer_to_refunds',
    { researcher: ['Order 7, 20 euros.'] },
    'You get 20 euros.',
  ])
})

test('an approval inside stands beside the answer, with the chain of agents', () => {
  const entries = golden('agent-approval')
  const { items } = fold(
    entries.slice(
      0,
      entries.findIndex(({ type }) => type === 'suspend'),
    ),
  )
  expect(items.map(({ kind }) => kind)).toEqual(['tool', 'question'])
  expect(items[1]).toMatchObject({
    ask: { request: { toolName: 'upload', input: { path: 'it.md' }, agents: ['desk', 'writer', 'publish'] } },
  })
})

test('a message into the turn stands where it was told; one that was taken back is nowhere, one that came too late in the next turn', () => {
  const entries = golden('server-tool')
  const at = entries.findIndex(({ step }) => step === 'main/answer/5')
  const by = { id: 'ann' }
  const sent = (id: string, more: object = {}) =>
    ({
      type: 'message',
      step: 'main/answer',
      timestamp: entries[at]!.timestamp,
      id,
      content: id,
      protocol: 'api',
      by,
      sentAt: 0,
      ...more,
    }) as Entry
  const messages = [
    sent('told'),
    sent('withdrawn', { outcome: 'withdrawn' }),
    sent('dropped', { outcome: 'dropped' }),
    sent('next', { outcome: 'next', runId: 'run_2' }),
  ]
  const all = [...entries.slice(0, at), ...messages, ...entries.slice(at)].map((entry, i) => ({ ...entry, seq: i + 1 }))
  for (const each of [all, all.filter(({ type }) => turnTypes.includes(type))]) {
    const turn = fold(each)
    const said = turn.items.filter((item) => item.kind === 'said')
    expect(said).toMatchObject([
      { messageId: 'told', by },
      { messageId: 'dropped', isDropped: true },
    ])
    expect(said[0]).not.toHaveProperty('isDropped')
    expect(kinds(turn)).toEqual(['text', ...Array(3).fill(expect.stringMatching(/^tool/u)), 'said', 'said', 'text'])
    // Those that the chat need not show as waiting.
    expect(turn.told).toEqual(['told', 'withdrawn', 'dropped'])
  }
})
