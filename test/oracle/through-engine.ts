/** One recorded provider behind the engine and behind `streamText`: the same agent, tools and settings for both. */
import { isStepCount, jsonSchema, streamText, tool, type TextStreamPart, type ToolSet } from 'ai'
import { parsePipeline } from '../../src/pipeline/parse.ts'
import { toModelPart, type Entry } from '../../src/part/entry.ts'
import type { ModelPart } from '../../src/part/model-part.ts'
import { createModelResolver, type Endpoint } from '../../src/models/resolver.ts'
import type { RunResult } from '../../src/runtime/runtime.ts'
import type { LlmResult } from '../../src/engine/steps/llm.ts'
import { protocolOf, type ProviderFixture } from '../../src/models/testing/provider-fixtures.ts'
import type { RecordedProvider } from '../../src/models/testing/recorded-provider.ts'
import { createEngine, entriesOf, type Engine } from '../support/engine.ts'

// The SDK prints what it warns of otherwise.
globalThis.AI_SDK_LOG_WARNINGS = false

export interface Setting {
  protocol: ReturnType<typeof protocolOf>
  tools: string[]
  execute: (input: unknown) => unknown
  maxSteps: number
  providerOptions?: Record<string, Record<string, string | boolean | string[]>>
}

const inputSchema = { type: 'object' as const, properties: {} }
const messages = [{ role: 'user' as const, content: 'What now?' }]
const system = 'Be brief.'

function endpoints({ protocol }: Setting, { baseURL }: RecordedProvider): Endpoint[] {
  return [{ name: 'recorded', baseURL, protocol }]
}

export interface Heard {
  result: RunResult
  entries: Entry[]
  /** What `onFinish` was given; absent when it was not called. */
  finished?: LlmResult
  /** Errors that `onError` was given. */
  errors: unknown[]
  /** Names of the tools that were run. */
  ran: string[]
}

/** An engine whose one agent asks the recorded provider. */
export function createRecordedEngine(setting: Setting, provider: RecordedProvider) {
  const heard: Pick<Heard, 'finished' | 'errors' | 'ran'> = { errors: [], ran: [] }
  const yaml = `
workflow:
  - id: answer
    type: llm
    config: ${JSON.stringify({
      model: 'recorded:m',
      stream: true,
      system,
      messages: '$input.messages',
      temperature: 0,
      retries: 0,
      // `streamText` does not mark prompts.
      cache: 'none',
      maxSteps: setting.maxSteps,
      tools: setting.tools.map((name) => ({ name })),
      onFinish: 'onFinish',
      onError: 'onError',
      ...(setting.providerOptions === undefined ? undefined : { providerOptions: setting.providerOptions }),
    })}
`
  parsePipeline(yaml)
  const engine: Engine = createEngine({
    agents: { a: yaml },
    models: { endpoints: endpoints(setting, provider) },
    tools: Object.fromEntries(
      setting.tools.map((name) => [
        name,
        {
          description: 'A tool',
          parameters: jsonSchema(inputSchema),
          execute: (input: unknown) => (heard.ran.push(name), setting.execute(input)),
        },
      ]),
    ),
    callbacks: {
      onFinish: (result: LlmResult) => void (heard.finished = result),
      onError: ({ error }: { error: unknown }) => void heard.errors.push(error),
    },
  })
  return {
    async hear(): Promise<Heard> {
      Object.assign(heard, { finished: undefined, errors: [], ran: [] })
      const run = await engine.runtime.start('a', { messages })
      const result = await run.result
      return { ...heard, result, entries: await entriesOf(engine.store, run.id) }
    },
    close: () => engine.close(),
  }
}

export interface Oracle {
  parts: TextStreamPart<ToolSet>[]
  text: string
  messages: unknown
}

export async function hearOracle(setting: Setting, provider: RecordedProvider): Promise<Oracle> {
  const model = createModelResolver({ env: {}, endpoints: endpoints(setting, provider) }).resolve('recorded:m')
  const { tools, execute, maxSteps, providerOptions } = setting
  const result = streamText({
    model,
    messages,
    instructions: system,
    temperature: 0,
    tools: Object.fromEntries(
      tools.map((name) => [
        name,
        tool({
          description: 'A tool',
          inputSchema: jsonSchema(inputSchema),
          execute: (input: unknown) => execute(input),
        }),
      ]),
    ) as ToolSet,
    stopWhen: isStepCount(maxSteps),
    maxRetries: 0,
    ...(providerOptions === undefined ? undefined : { providerOptions }),
    onError: () => {},
  })
  const parts: TextStreamPart<ToolSet>[] = []
  for await (const part of result.stream) parts.push(part)
  if (parts.some(({ type }) => type === 'error')) return { parts, text: '', messages: undefined }
  const { text } = (await result.steps).at(-1)!
  return { parts, text, messages: await result.responseMessages }
}

const runParts =
  'run-start step-start step-finish prompt answer-end usage request response suspend resume retry warning ' +
  'session-info cli-output data step-reset run-end'
const isRunPart: ReadonlySet<string> = new Set(runParts.split(' '))

type RecordedModelPart = Parameters<typeof toModelPart>[0]

/** What models and tools said, out of a run's log. */
export function modelParts(entries: readonly Entry[]): ModelPart[] {
  return entries
    .filter((entry): entry is Entry & RecordedModelPart => !isRunPart.has(entry.type))
    .map(({ seq: _seq, timestamp: _timestamp, step: _step, ...part }) => toModelPart(part as RecordedModelPart))
}

/**
 * Ids of blocks are the engine's own, and Google gives calls without an id a random one: both are numbered in the order
 * in which they appear. Results of tools come when they come: they are put behind, by call.
 */
export function comparable(said: readonly object[]): object[] {
  const names = new Map<unknown, string>()
  let count = 0
  const numbered = said.map((part): Record<string, unknown> => {
    const fields: Record<string, unknown> = { ...part }
    const key = 'toolCallId' in fields ? 'toolCallId' : 'id'
    const id = fields[key]
    if (id === undefined) return fields
    if (/^(text|reasoning)-start$/u.test(String(fields['type'])) || !names.has(id)) names.set(id, `#${++count}`)
    return { ...fields, [key]: names.get(id) }
  })
  const isResult = ({ type }: Record<string, unknown>) => type === 'tool-result'
  const results = numbered
    .filter(isResult)
    .toSorted((a, b) => (String(a['toolCallId']) < String(b['toolCallId']) ? -1 : 1))
  return [...numbered.filter((part) => !isResult(part)), ...results]
}

/** Content without what a call cost and how it ended. */
export function contentOf(said: readonly object[]): object[] {
  return comparable(said).filter((part) => !/^(finish|tool-result)$/u.test(String((part as { type: string }).type)))
}

export function settingOf(fixture: ProviderFixture): Setting {
  return { protocol: protocolOf(fixture), tools: fixture.tools, execute: () => ({ ok: true }), maxSteps: 1 }
}
