/**
 * Random legal runs for properties: routers and answering steps, parallel answers, tools of every kind, suspends or calls
 * that are handed over, crashes with a new attempt, and every way to end, at any point. Ids of tool calls are unique in a run.
 */
import fc from 'fast-check'
import type { Entry, RecordedPart } from '../src/part/entry.ts'
import { createOpenItems } from '../src/fold/open-items.ts'
import type { Outcome } from '../src/part/part.ts'
import { noUsage } from '../src/part/usage.ts'
import { buildRun, startPart, type Item } from './build-run.ts'

const tools = [
  { name: 'serverTool', inputSchema: {} },
  { name: 'clientTool', inputSchema: {}, client: true as const },
]

interface TextBlock {
  kind: 'text' | 'reasoning'
  deltas: string[]
  signed: boolean
}
interface CallBlock {
  kind: 'call'
  runner: 'server' | 'client' | 'approval' | 'provider'
  streamed: boolean
  input: string
  outcome: 'ok' | 'error' | 'denied' | 'unavailable' | 'handed-over' | 'aborted'
  preliminary: boolean
  /** The server's tool is code that runs steps, or an agent that a model calls. */
  nested?: Nested
}
type Nested = boolean | 'agent'
interface OtherBlock {
  kind: 'source-url' | 'source-document' | 'file' | 'custom' | 'data' | 'data-id' | 'data-transient' | 'error'
}
type Block = TextBlock | CallBlock | OtherBlock
interface Turn {
  blocks: Block[]
  /** How many parts a first attempt emits before a crash. */
  crash: number | undefined
}
interface Plan {
  branches: { answer: boolean; turns: Turn[] }[]
  picks: number[]
  outcome: Outcome
  cut: number
  after: boolean
  /** The client's tools are not waited for. */
  handOver: boolean
  finishReason: string
}

const text = fc.string({ unit: fc.constantFrom('a', 'é', '水', '😀', '\n', '\r', '"', '\\', '\u2028', '\ud800', ': ') })
const blockWith = (nested: fc.Arbitrary<Nested>): fc.Arbitrary<Block> =>
  fc.oneof(
    { weight: 4, arbitrary: blockOf('text') },
    { weight: 2, arbitrary: blockOf('reasoning') },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('call' as const),
        runner: fc.constantFrom('server', 'client', 'approval', 'provider'),
        streamed: fc.boolean(),
        input: fc.oneof(fc.constantFrom('', '{"a":', '{"a":1}'), fc.json({ maxDepth: 1 })),
        outcome: fc.constantFrom('ok', 'ok', 'error', 'denied', 'unavailable', 'handed-over', 'aborted'),
        preliminary: fc.boolean(),
        nested,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom<OtherBlock['kind'][]>(
          'source-url',
          'source-document',
          'file',
          'custom',
          'data',
          'data-id',
          'data-transient',
          'error',
        ),
      }),
    },
  )
const turnWith = (nested: fc.Arbitrary<Nested>): fc.Arbitrary<Turn> =>
  fc.record({
    blocks: fc.array(blockWith(nested), { maxLength: 4 }),
    crash: fc.option(fc.nat({ max: 12 }), { nil: undefined, freq: 5 }),
  })
const planWith = (nested: fc.Arbitrary<Nested>): fc.Arbitrary<Plan> =>
  fc.record({
    branches: fc.array(
      fc.record({
        answer: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
        turns: fc.array(turnWith(nested), { minLength: 1, maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    picks: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 20 }),
    outcome: fc.constantFrom<Outcome[]>(
      'completed',
      'completed',
      'completed',
      'failed',
      'aborted',
      'timed-out',
      'budget-exceeded',
      'interrupted',
    ),
    cut: fc.nat(),
    after: fc.boolean(),
    handOver: fc.boolean(),
    finishReason: fc.constantFrom('stop', 'stop', 'stop', 'tool-calls', 'length', 'content-filter', 'error', 'other'),
  })

const plan = planWith(fc.constant(false))

function blockOf(kind: 'text' | 'reasoning'): fc.Arbitrary<Block> {
  return fc.record({
    kind: fc.constant(kind),
    deltas: fc.array(text, { maxLength: 4 }),
    signed: fc.boolean(),
  })
}

/** Entries of one whole legal run. */
export const arbitraryRun: fc.Arbitrary<Entry[]> = plan.map(toEntries)

/** Of one in which some tools run steps. */
export const arbitraryNestedRun: fc.Arbitrary<Entry[]> = planWith(fc.boolean()).map(toEntries)

/** Of one in which most tools are agents, which call tools and agents. */
export const arbitraryAgentRun: fc.Arbitrary<Entry[]> = planWith(
  fc.constantFrom<Nested[]>('agent', 'agent', false),
).map(toEntries)

/** Of one that nothing went wrong with on the way. */
export const arbitraryCompletedRun: fc.Arbitrary<Entry[]> = plan.map(({ branches, ...rest }) => {
  const calm = branches.map(({ turns, ...branch }) => {
    return { ...branch, turns: turns.map(({ blocks }) => ({ blocks, crash: undefined })) }
  })
  return toEntries({ ...rest, branches: calm, outcome: 'completed' })
})

interface Branch {
  path: string
  stepType: 'llm' | 'router'
  handOver: boolean
  children: number
  /** What the next phase begins with: outcomes of calls that waited for a client. */
  waiting: Item[]
}

function toEntries({ branches, picks, outcome, cut, after, handOver, finishReason }: Plan): Entry[] {
  let ids = 0
  const id = (kind: string) => `${kind}-${++ids}`
  const states = branches.map(({ answer }, b): Branch => {
    return { path: `main/b${b}`, stepType: answer ? 'llm' : 'router', handOver, children: 0, waiting: [] }
  })
  const items: Item[] = [{ step: '', part: { ...startPart, ...(handOver && { handOver }) } }]
  const phases = Math.max(...branches.map(({ turns }) => turns.length))
  for (let phase = 0; phase <= phases; phase++) {
    const requests: Item[] = []
    const lanes = branches.map(({ answer, turns }, b) => {
      const branch = states[b]!
      const lane: Item[] = []
      if (phase === 0) {
        lane.push({
          step: branch.path,
          part: { type: 'step-start', stepType: branch.stepType, attempt: 1, ...(answer && { answer }) },
        })
      }
      lane.push(...branch.waiting)
      branch.waiting = []
      const due = turns[phase]
      if (due) lane.push(...turnItems(due, branch, id, requests))
      else if (phase === turns.length) lane.push({ step: branch.path, part: { type: 'step-finish', duration: 1 } })
      return lane
    })
    items.push(...interleave(lanes, picks))
    if (requests.length === 0) continue
    const named = requests.map(({ part }) => (part as { requestId: string }).requestId)
    items.push({ step: '', part: { type: 'suspend', requests: named } })
    for (const { step, part } of requests) items.push({ step, part: answerTo(part) })
    items.push({ step: '', part: { type: 'resume', protocol: 'ui' } })
  }
  const answered = branches.some(({ answer }) => answer)
  const output = answered ? undefined : ids % 2 === 0 ? 'plain output' : { output: ids }
  if (answered) items.push({ step: '', part: { type: 'answer-end', finishReason, usage: noUsage } })
  if (after) items.push(...afterItems(id))
  return end(items, outcome, cut, output)
}

function turnItems({ blocks, crash }: Turn, branch: Branch, id: (kind: string) => string, requests: Item[]): Item[] {
  const step = `${branch.path}/${++branch.children}`
  const attempt = (n: number): Item[] => {
    const start: RecordedPart[] = [
      { type: 'step-start', stepType: 'model-call', attempt: n },
      { type: 'prompt', stage: 'main', model: 'test:model', messages: [], tools },
      { type: 'stream-start', warnings: [] },
    ]
    return start.map((part) => ({ step, part }))
  }
  const items: Item[] = []
  if (crash !== undefined) {
    const scratch: Branch = { ...branch, waiting: [] }
    const doomed = [...attempt(1), ...blocks.flatMap((block) => blockItems(block, scratch, step, id).said)]
    items.push(...doomed.slice(0, crash + 1), { step, part: { type: 'step-reset', attempt: 1 } })
  }
  items.push(...attempt(crash === undefined ? 1 : 2))
  const later: Item[] = []
  for (const block of blocks) {
    const { said, later: after, request } = blockItems(block, branch, step, id)
    items.push(...said)
    later.push(...after)
    if (request) {
      requests.push(request)
      later.push(request)
    }
  }
  const reason = { unified: 'stop', raw: undefined } as const
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  }
  items.push({ step, part: { type: 'finish', finishReason: reason, usage } })
  items.push({ step, part: { type: 'step-finish', duration: 1 } })
  return [...items, ...later]
}

interface Said {
  said: Item[]
  later: Item[]
  request?: Item
}

function blockItems(block: Block, branch: Branch, step: string, id: (kind: string) => string): Said {
  if (block.kind === 'call') return callItems(block, branch, step, id)
  const said = (parts: RecordedPart[]): Said => ({ said: parts.map((part) => ({ step, part })), later: [] })
  switch (block.kind) {
    case 'text':
    case 'reasoning': {
      const { kind, deltas, signed } = block
      const own = id(kind)
      const providerMetadata = signed ? { test: { signature: own } } : undefined
      return said([
        { type: `${kind}-start`, id: own },
        ...deltas.map((delta): RecordedPart => ({ type: `${kind}-delta`, id: own, delta })),
        { type: `${kind}-end`, id: own, ...(providerMetadata && { providerMetadata }) },
      ])
    }
    case 'source-url':
      return said([{ type: 'source', sourceType: 'url', id: id('source'), url: 'https://example.com/', title: 'A' }])
    case 'source-document':
      return said([{ type: 'source', sourceType: 'document', id: id('source'), mediaType: 'text/plain', title: 'B' }])
    case 'file':
      return said([{ type: 'file', mediaType: 'image/png', data: 'AAAA' }])
    case 'custom':
      return said([{ type: 'custom', kind: 'test.thing' }])
    case 'error':
      return said([{ type: 'error', error: { code: 'provider', message: 'a hiccup' } }])
    case 'data':
      return said([{ type: 'data', name: 'note', data: { n: id('data') } }])
    case 'data-id':
      return said([{ type: 'data', name: 'progress', id: `progress-${step}`, data: 1 }])
    case 'data-transient':
      return said([{ type: 'data', name: 'toast', data: 'once', transient: true }])
  }
}

function callItems(block: CallBlock, branch: Branch, step: string, id: (kind: string) => string): Said {
  const { runner, streamed, input, preliminary } = block
  const toolCallId = id('call')
  // What a router says to hand over.
  const toolName = branch.stepType === 'router' && runner === 'server' && preliminary ? 'respond' : `${runner}Tool`
  const executed = runner === 'provider' ? { providerExecuted: true } : {}
  const call: RecordedPart[] = []
  if (streamed) {
    call.push(
      { type: 'tool-input-start', id: toolCallId, toolName, ...executed },
      { type: 'tool-input-delta', id: toolCallId, delta: input },
      { type: 'tool-input-end', id: toolCallId },
    )
  }
  call.push({ type: 'tool-call', toolCallId, toolName, input, ...executed })
  const asks = runner === 'client' || runner === 'approval'
  const outcome = asks && branch.handOver ? withoutClient(block) : block.outcome
  const failed = outcome !== 'ok'
  const named = failed && outcome !== 'error' ? { outcome } : {}
  const results: RecordedPart[] = preliminary
    ? [{ type: 'tool-result', toolCallId, toolName, result: 'so far', preliminary: true }]
    : []
  results.push({
    type: 'tool-result',
    toolCallId,
    toolName,
    result: failed ? `it ${outcome}` : { value: 1 },
    ...(failed && { isError: true }),
    ...named,
  })
  const at = (path: string, parts: RecordedPart[]): Item[] => parts.map((part) => ({ step: path, part }))
  if (runner === 'provider') return { said: at(step, [...call, ...results]), later: [] }
  const path = `${branch.path}/${++branch.children}`
  const stepType = runner === 'server' ? 'tool-call' : runner
  const start: RecordedPart = { type: 'step-start', stepType, attempt: 1, toolCallId, toolName }
  const finish: RecordedPart = { type: 'step-finish', duration: 1 }
  if (!asks || branch.handOver) {
    const isAgent = runner === 'server' && block.nested === 'agent'
    const begun: RecordedPart = isAgent ? { ...start, agent: 'inner', pipeline: 'workflow: []' } : start
    const own = !isAgent && block.nested === true && runner === 'server' ? agentItems(path, id('text')) : []
    const inner = isAgent ? calledAgentItems(path, id, preliminary ? 1 : 0) : own
    return { said: at(step, call), later: [...at(path, [begun]), ...inner, ...at(path, [...results, finish])] }
  }
  branch.waiting.push(...at(path, [...results, finish]))
  const requestId = id('request')
  const kind = runner === 'client' ? 'tool' : 'approval'
  const roles = kind === 'approval' && /[12]$/u.test(requestId) ? { roles: ['operator' as const] } : undefined
  const request: RecordedPart = { type: 'request', requestId, kind, toolCallId, toolName, input, ...roles, deadline: 0 }
  return { said: at(step, call), later: at(path, [start]), request: { step: path, part: request } }
}

/** What an agent says to the tool loop that called it, which is no answer to the client. */
function agentItems(path: string, own: string): Item[] {
  const parts: [string, RecordedPart][] = [
    [`${path}/answer`, { type: 'step-start', stepType: 'llm', attempt: 1 }],
    [`${path}/answer/1`, { type: 'step-start', stepType: 'model-call', attempt: 1 }],
    [`${path}/answer/1`, { type: 'text-start', id: own }],
    [`${path}/answer/1`, { type: 'text-delta', id: own, delta: 'NESTED' }],
    [`${path}/answer/1`, { type: 'text-end', id: own }],
    [`${path}/answer/1`, { type: 'step-finish', duration: 1 }],
    [`${path}/answer`, { type: 'step-finish', duration: 1 }],
  ]
  return parts.map(([step, part]) => ({ step, part }))
}

/** What an agent does that a model has called: it speaks, is interrupted by a crash, calls a tool, and an agent where `depth` is left. */
function calledAgentItems(path: string, id: (kind: string) => string, depth: number): Item[] {
  const call = id('call')
  const [text, again, thought] = [id('text'), id('text'), id('reasoning')]
  const [first, second, third] = [`${path}/in/1`, `${path}/in/2`, `${path}/in/3`]
  const modelCall = (attempt: number): RecordedPart => ({ type: 'step-start', stepType: 'model-call', attempt })
  const isAgent = depth > 0
  const tool = { toolCallId: call, toolName: isAgent ? 'deeper' : 'innerTool' }
  const start: RecordedPart = { type: 'step-start', stepType: 'tool-call', attempt: 1, ...tool }
  const deeper: Item[] = isAgent ? calledAgentItems(second, id, depth - 1) : []
  const parts = (...list: [string, RecordedPart][]): Item[] => list.map(([step, part]) => ({ step, part }))
  return [
    ...parts(
      [`${path}/in`, { type: 'step-start', stepType: 'llm', attempt: 1 }],
      [first, modelCall(1)],
      [first, { type: 'text-start', id: text }],
      [first, { type: 'text-delta', id: text, delta: 'NESTED' }],
      [first, { type: 'step-reset', attempt: 1 }],
      [first, modelCall(2)],
      [first, { type: 'reasoning-start', id: thought }],
      [first, { type: 'reasoning-delta', id: thought, delta: 'NESTED' }],
      [first, { type: 'reasoning-end', id: thought }],
      [first, { type: 'tool-input-start', id: call, toolName: tool.toolName }],
      [first, { type: 'tool-input-delta', id: call, delta: '{}' }],
      [first, { type: 'tool-input-end', id: call }],
      [first, { type: 'tool-call', ...tool, input: '{}' }],
      [first, { type: 'step-finish', duration: 1 }],
      [second, isAgent ? { ...start, agent: 'deeper', pipeline: 'workflow: []' } : start],
    ),
    ...deeper,
    ...parts(
      [second, { type: 'tool-result', ...tool, result: 'NESTED' }],
      [second, { type: 'step-finish', duration: 1 }],
      [third, modelCall(1)],
      [third, { type: 'text-start', id: again }],
      [third, { type: 'text-delta', id: again, delta: 'NESTED' }],
      [third, { type: 'text-end', id: again }],
      [third, { type: 'step-finish', duration: 1 }],
      [`${path}/in`, { type: 'step-finish', duration: 1 }],
    ),
  ]
}

/** What a call comes to that would be asked of a client, where nobody waits for one. */
function withoutClient({ runner, outcome }: CallBlock): CallBlock['outcome'] {
  if (runner === 'approval') return 'denied'
  return outcome === 'unavailable' ? outcome : 'handed-over'
}

function answerTo(part: RecordedPart): RecordedPart {
  if (part.type !== 'request') throw new TypeError('not a request')
  const { requestId, kind } = part
  return {
    type: 'response',
    requestId,
    outcome: 'answered',
    answer: kind === 'tool' ? { kind, output: 1 } : { kind: 'approval', approved: requestId.endsWith('2') },
    protocol: 'ui',
  }
}

function afterItems(id: (kind: string) => string): Item[] {
  const own = id('text')
  const toolCallId = id('call')
  const parts: [string, RecordedPart][] = [
    ['after/x', { type: 'step-start', stepType: 'llm', attempt: 1 }],
    ['after/x/1', { type: 'step-start', stepType: 'model-call', attempt: 1 }],
    ['after/x/1', { type: 'prompt', stage: 'AFTER', model: 'AFTER', messages: [] }],
    ['after/x/1', { type: 'tool-call', toolCallId, toolName: 'AFTER', input: '{}', providerExecuted: true }],
    ['after/x/1', { type: 'tool-result', toolCallId, toolName: 'AFTER', result: 'AFTER' }],
    ['after/x/1', { type: 'text-start', id: own }],
    ['after/x/1', { type: 'text-delta', id: own, delta: 'AFTER' }],
    ['after/x/1', { type: 'text-end', id: own }],
    ['after/x/1', { type: 'step-finish', duration: 1 }],
    ['after/x', { type: 'data', name: 'late', data: 'AFTER' }],
    ['after/x', { type: 'step-finish', duration: 1 }],
  ]
  return parts.map(([step, part]) => ({ step, part }))
}

function interleave(lanes: Item[][], picks: number[]): Item[] {
  const rest = lanes.map((lane) => [...lane])
  const items: Item[] = []
  for (let i = 0; rest.some((lane) => lane.length > 0); i++) {
    const open = rest.filter((lane) => lane.length > 0)
    items.push(open[picks[i % picks.length]! % open.length]!.shift()!)
  }
  return items
}

/** Ends a run as the runner does: at any other outcome than `completed` somewhere in the middle, closing what is open. */
function end(items: Item[], outcome: Outcome, cut: number, output: unknown): Entry[] {
  if (outcome === 'completed') {
    return buildRun([...items, { step: '', part: { type: 'run-end', outcome, usage: noUsage, output } }])
  }
  const entries = buildRun(items.slice(0, 1 + (cut % items.length)))
  const open = createOpenItems()
  for (const entry of entries) open.apply(entry)
  const error = { code: outcome, message: `The run ${outcome}.` }
  const closing = open.closing({ now: 1_705_584_899_000, outcome: 'aborted', error }) as Item[]
  closing.push({ step: '', part: { type: 'run-end', outcome, usage: noUsage, error } })
  return [...entries, ...buildRun(closing, entries.length + 1)]
}
