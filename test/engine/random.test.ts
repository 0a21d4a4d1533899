/** Random models, tools, aborts and crashes: whatever happens, a run obeys the grammar, ends once, and settles. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Entry } from '../../src/part/entry.ts'
import { memoryStore } from '../../src/store/memory-store.ts'
import type { ToolImplementation } from '../../src/tools/tool.ts'
import {
  createScriptedModel,
  drop,
  errorPart,
  finish,
  reasoning,
  text,
  throws,
  toolCall,
  type ScriptStep,
} from '../../src/models/testing/scripted-model.ts'
import {
  agent,
  createEngine,
  entriesOf,
  grammarFaults,
  only,
  type Engine,
  type EngineOptions,
} from '../support/engine.ts'
import { cutAfter, pairingFault, readAll } from '../support/going-on.ts'
import { often } from '../support/thorough.ts'

const toolNames = ['quick', 'later', 'throws', 'stuck', 'ask', 'pay', 'unknown', 'twice', 'respond'] as const

type Item =
  | { kind: 'text' | 'reasoning'; deltas: string[] }
  | { kind: 'call'; tool: (typeof toolNames)[number]; input: string }
  | { kind: 'pause' }
type Ending = 'finish' | 'no finish' | 'error part' | 'broken' | 'refused' | 'busy'
interface Call {
  items: Item[]
  ending: Ending
}
interface Plan {
  /** Behind a router that calls the tools, or not. */
  routed: boolean
  calls: Call[]
  /** When the log has this many entries … */
  at: number
  act: 'nothing' | 'stop' | 'leave'
  /** What is said to each request in turn; then the run is stopped. */
  answers: ('yes' | 'no' | 'value')[]
  cut: number
}

const deltas = fc.array(fc.string({ maxLength: 4 }), { maxLength: 4 })
const item: fc.Arbitrary<Item> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('text' as const), deltas }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reasoning' as const), deltas }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('call' as const),
      tool: fc.constantFrom(...toolNames),
      input: fc.constantFrom('{}', '', '{"a":1}', '{"a":', '[]'),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'pause' as const }) },
)
const plan: fc.Arbitrary<Plan> = fc.record({
  routed: fc.boolean(),
  calls: fc.array(
    fc.record({
      items: fc.array(item, { maxLength: 5 }),
      ending: fc.oneof(
        { weight: 8, arbitrary: fc.constant('finish' as const) },
        { weight: 3, arbitrary: fc.constantFrom<Ending[]>('no finish', 'error part', 'broken', 'refused', 'busy') },
      ),
    }),
    { minLength: 1, maxLength: 4 },
  ),
  at: fc.nat({ max: 40 }),
  act: fc.constantFrom('nothing', 'nothing', 'stop', 'leave'),
  answers: fc.array(fc.constantFrom('yes', 'no', 'value'), { maxLength: 4 }),
  cut: fc.nat(),
})

function toScript({ items, ending }: Call, n: number): ScriptStep[] {
  if (ending === 'refused') return [throws(new Error('refused'))]
  if (ending === 'busy') return [throws(Object.assign(new Error('overloaded'), { status: 400 }))]
  const steps = items.map((each, i): ScriptStep => {
    if (each.kind === 'text') return text(...each.deltas)
    if (each.kind === 'reasoning') return reasoning(...each.deltas)
    if (each.kind === 'call') return toolCall(`c${n}.${i}`, each.tool, each.input)
    const opened = new Promise<void>((resolve) => setTimeout(resolve, 1))
    return { open() {}, opened, reached: opened, arrive() {} }
  })
  const calls = items.some(({ kind }) => kind === 'call')
  if (ending === 'finish') steps.push(finish(calls ? 'tool-calls' : 'stop'))
  if (ending === 'error part') steps.push(errorPart(new Error('in the stream')))
  if (ending === 'broken') steps.push(drop())
  return steps
}

const any = z.looseObject({})
const tools: Record<string, ToolImplementation> = {
  quick: { parameters: any, execute: () => ({ ok: true }) },
  later: { parameters: any, execute: () => new Promise((resolve) => setTimeout(resolve, 1, 'late')) },
  throws: { parameters: any, execute: () => Promise.reject(new TypeError('no luck')) },
  stuck: { parameters: any, timeout: 5, execute: () => new Promise(() => undefined) },
  ask: { parameters: any },
  pay: { parameters: any, approval: true, execute: () => 'paid' },
  twice: { parameters: any, idempotent: true, execute: () => 'again' },
}

/** Plays the plan that the first message names; after its last call it has nothing more to say. */
function player(plans: Map<string, Plan>): LanguageModelV4 {
  const model = createScriptedModel([])
  return {
    ...model,
    async doStream(options) {
      const fault = pairingFault(options.prompt)
      if (fault !== undefined) throw new Error(`UNPAIRED ${fault}`)
      const first = options.prompt.find(({ role }) => role === 'user')!.content[0] as { text: string }
      const n = options.prompt.filter(({ role }) => role === 'tool').length
      const call = plans.get(first.text)!.calls[n]
      return createScriptedModel([call ? toScript(call, n) : [text('.'), finish()]]).doStream(options)
    },
  }
}

const plans = new Map<string, Plan>()
const names = Object.keys(tools).join(', ')
const routed = `
recover: true
workflow:
  - { id: route, type: router, result: routed, config: { model: "script:m", retries: 0, tools: [${names}] } }
  - { id: answer, type: llm, config: { model: "script:m", retries: 0, stream: true, messages: "$routed.messages" } }
`
const options = (more: Partial<EngineOptions> = {}): EngineOptions => ({
  agents: { a: agent(`tools: [${names}]\nretries: 0`, 'recover: true'), routed },
  tools,
  scripts: { m: player(plans) },
  ...more,
})

/** Follows a run as a client would, acts where the plan says so, answers what is asked; gives what was delivered. */
async function live(engine: Engine, name: string): Promise<{ id: string; seen: Entry[] }> {
  const { routed: behind, at, act, answers } = plans.get(name)!
  const run = await engine.runtime.start(behind ? 'routed' : 'a', { messages: [{ role: 'user', content: name }] })
  const seen: Entry[] = []
  const left = [...answers]
  const busy: Promise<unknown>[] = []
  for await (const entry of run.parts) {
    seen.push(entry)
    if (seen.length === at && act === 'leave') break
    if (seen.length === at && act === 'stop') busy.push(run.stop())
    if (entry.type === 'request') busy.push(reply(engine, run.id, entry.requestId, entry.kind, left.shift()))
  }
  if (act === 'leave') busy.push(run.stop())
  await Promise.all(busy)
  return { id: run.id, seen }
}

/** A case that hangs is shown with its log instead of running into the test's own limit. */
async function within<T>(engine: Engine, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(async () => {
      const [row] = await engine.store.runs.list({ limit: 1 })
      const entries = row === undefined ? [] : await readAll(engine, row.id)
      reject(
        new Error(
          `nothing more happens in ${JSON.stringify(row)}\n${entries.map((e) => JSON.stringify(e)).join('\n')}`,
        ),
      )
    }, 8000)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

function reply({ runtime }: Engine, run: string, requestId: string, kind: string, how: string | undefined) {
  if (how === undefined) return runtime.stop(run)
  if (kind === 'approval') return runtime.answer(run, requestId, { kind: 'approval', approved: how === 'yes' })
  return runtime.answer(run, requestId, { kind: 'tool', output: how, isError: how === 'no' })
}

const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)
beforeAll(() => void process.on('unhandledRejection', note))
afterAll(() => {
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

/** Answers whatever is asked until the run ends; how it ended. */
async function attend(engine: Engine, id: string): Promise<string> {
  for (;;) {
    const { outcome } = await (await engine.runtime.open(id))!.result
    if (outcome !== 'suspended') return outcome
    for (const { requestId, kind } of only(await readAll(engine, id), 'request')) {
      await reply(engine, id, requestId, kind, 'yes')
    }
  }
}

let cases = 0
function name(each: Plan): string {
  const id = `case ${cases++}`
  plans.set(id, each)
  return id
}

describe.each([
  ['SQLite', {}],
  ['memory, which hands over', { wrapStore: () => memoryStore({ keep: 100_000 }) }],
] as [string, Partial<EngineOptions>][])('on %s', (_, more) => {
  let engine: Engine
  beforeAll(() => {
    engine = createEngine(options(more))
  })
  afterAll(() => engine.close())

  test('every run obeys the grammar, ends once and settles; what is read is what was recorded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 4 }), async (several) => {
        await Promise.all(
          several.map(async (each) => {
            const { id, seen } = await within(engine, live(engine, name(each)))
            const result = await (await engine.runtime.open(id))!.result
            const { outcome } = result
            const entries = await readAll(engine, id)
            expect(grammarFaults(entries)).toEqual([])
            expect(only(entries, 'run-end')).toHaveLength(1)
            expect(outcome).toBe(only(entries, 'run-end')[0]!.outcome)
            expect(['completed', 'failed', 'aborted']).toContain(outcome)
            expect(JSON.stringify(entries)).not.toContain('UNPAIRED')
            // Delivered is a prefix of recorded, byte for byte.
            expect(entries.slice(0, seen.length)).toEqual(seen)
            if (each.act !== 'leave') expect(seen).toHaveLength(entries.length)
            expect(JSON.parse(JSON.stringify(entries))).toEqual(entries)
            expect(only(entries, 'usage').length).toBeGreaterThanOrEqual(only(entries, 'prompt').length)
          }),
        )
      }),
      { numRuns: often(60, 3) },
    )
    expect(engine.runtime.active).toBe(0)
  })
})

test('cut anywhere, every run goes on to one end', async () => {
  const engine = createEngine(options())
  const { recovered, gaps } = { recovered: new Set<string>(), gaps: [] as string[] }
  try {
    await fc.assert(
      fc.asyncProperty(plan, async (each) => {
        const { id } = await within(engine, live(engine, name({ ...each, act: 'nothing' })))
        const entries = await readAll(engine, id)
        const k = 1 + (each.cut % (entries.length - 1))
        const next = await cutAfter(entries, k, options())
        try {
          const before = await next.store.runs.get(id)
          await next.runtime.recover()
          const how = await within(next, attend(next, id))
          recovered.add(how)
          // Only a run whose end itself was cut off, while it waited, has nothing left to go on with.
          if (how === 'interrupted') expect(before!.status).toBe('suspended')
          const after = await entriesOf(next.store, id)
          expect(after.slice(0, k)).toEqual(entries.slice(0, k))
          expect(only(after, 'run-end')).toHaveLength(1)
          if (JSON.stringify(after).includes('UNPAIRED')) gaps.push(JSON.stringify(after))
        } finally {
          await next.close()
        }
      }),
      { numRuns: often(50, 3) },
    )
    expect(gaps).toEqual([])
    expect(recovered).toContain('completed')
  } finally {
    await engine.close()
  }
})
