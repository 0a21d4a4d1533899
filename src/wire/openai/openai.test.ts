/** Properties over random runs: the frames, both forms of the answer, and what the official clients make of them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryCompletedRun, arbitraryRun } from '../../../test/arbitrary-run.ts'
import { readSdkParts, readStream } from '../../../test/openai-client.ts'
import { complete } from '../../../test/openai-items.ts'
import { cutAt, parseSse } from '../../../test/sse.ts'
import type { Entry } from '../../part/entry.ts'
import { toOpenAiCallId } from '../../part/openai-call-id.ts'
import { openaiJsonWire, type OpenAiBody } from './openai-completion.ts'
import type { OpenAiExtension, OpenAiOptions } from './openai-output.ts'
import { openaiWire } from './openai.ts'
import { textWire } from '../text/text.ts'
import { lastResume, wireContract } from '../wire.contract.ts'
import type { Wire, WireContext } from '../wire.ts'
import { often } from '../../../test/support/thorough.ts'

interface ToolCallDelta {
  index: number
  id?: string
  type?: string
  function: { name?: string; arguments: string }
}
interface Frame {
  id: string
  object: string
  created: number
  model: string
  choices: {
    text?: string
    delta: {
      role?: string
      content?: string
      reasoning_content?: string
      tool_calls?: ToolCallDelta[]
      tool_outputs?: { id: string; content: string }[]
    }
    finish_reason: string | null
  }[]
  usage?: Record<string, number> | null
  error?: { message: string; type: string; code: string; param: null }
  trace?: { messages: unknown[] }
  millrace?: { denied?: { toolCallId: string; toolName: string; reason: string }[] }
}

const runs = fc.oneof(arbitraryRun, arbitraryCompletedRun)
const asked: fc.Arbitrary<OpenAiOptions> = fc.record({
  includeUsage: fc.boolean(),
  extensions: fc.subarray<OpenAiExtension>(['tools', 'trace']),
  traceKey: fc.constant('trace'),
  object: fc.constantFrom('chat.completion', 'chat.completion', 'chat.completion', 'text_completion'),
})

const encodeAll = (
  entries: readonly Entry[],
  context?: WireContext,
  options?: Partial<OpenAiOptions>,
  wire: Wire = openaiWire,
) => {
  const encoder = wire.createEncoder(context, options)
  return { body: entries.map((entry) => encoder.encode(entry)).join(''), state: encoder.state }
}

/** Checks the framing, and gives the frames before `[DONE]`. */
function framesOf(body: string): Frame[] {
  const events = body.split('\n\n')
  expect(events.pop()).toBe('')
  const data = events.map((event) => {
    expect(event.startsWith('data: ')).toBe(true)
    return event.slice('data: '.length)
  })
  expect(data.pop()).toBe('[DONE]')
  return data.map((json) => JSON.parse(json) as Frame)
}

const judged = { finished: 0, failed: 0, calls: 0, outputs: 0, traces: 0, handedOver: 0, denied: 0 }

wireContract(openaiWire, {
  numRuns: 300,
  runs,
  options: asked,
  judge({ body, state, entries, context, options }) {
    const { includeUsage, extensions = [], object } = options
    expect(state).toBe('complete')
    expect(body).not.toContain('AFTER')
    expect(body).not.toContain('"respond"')
    const frames = framesOf(body)
    const errors = frames.filter(({ error }) => error !== undefined)
    const said = frames.filter(({ error }) => error === undefined)
    const isChat = object === 'chat.completion'
    for (const frame of said) {
      expect(frame).toMatchObject({
        id: isChat ? 'chatcmpl-run-1' : 'cmpl-run-1',
        object: isChat ? 'chat.completion.chunk' : 'text_completion',
        created: 1_705_584_896,
        model: 'assistant',
      })
    }
    const deltas = said.flatMap(({ choices }) => choices)
    const roles = deltas.filter(({ delta }) => delta?.role !== undefined)
    expect(roles).toEqual(isChat ? [deltas[0]] : [])
    const ends = deltas.filter(({ finish_reason }) => finish_reason !== null)
    expect(ends.length + errors.length).toBe(1)
    const usages = said.filter(({ usage }) => typeof usage === 'object' && usage !== null)
    expect(said.every(({ usage }) => (usage === undefined) !== includeUsage)).toBe(true)
    if (errors.length > 0) {
      judged.failed++
      expect(frames.at(-1)).toEqual({
        error: { message: expect.any(String), type: 'server_error', code: expect.any(String), param: null },
      })
      expect(usages).toEqual([])
      return
    }
    judged.finished++
    expect(usages).toEqual(includeUsage ? [said.at(-1)] : [])
    expect(said.at(includeUsage ? -2 : -1)!.choices).toEqual(ends)

    const calls = callsOf(deltas.map(({ delta }) => delta ?? {}))
    judged.calls += calls.length
    expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length)
    const inputs = new Map(
      entries.flatMap((e) => (e.type === 'tool-call' ? [[toOpenAiCallId(e.toolCallId), e.input.trim() || '{}']] : [])),
    )
    for (const { id, json } of calls) expect(json).toBe(inputs.get(id))
    const outputs = deltas.flatMap(({ delta }) => delta?.tool_outputs ?? [])
    judged.outputs += outputs.length
    const handedOver = outcomesOf(entries, 'clientTool')
    const isOwn = entries[0]!.type === 'run-start' && entries[0]!.handOver === true && isChat
    const clientCalls = calls.filter(({ name }) => name === 'clientTool')
    if (isOwn) {
      judged.handedOver += clientCalls.length
      expect(clientCalls.map(({ id }) => handedOver.get(id))).toEqual(clientCalls.map(() => 'handed-over'))
      if (clientCalls.length === 0) expect(ends[0]!.finish_reason).not.toBe('tool_calls')
      if (clientCalls.length > 0) expect(ends[0]!.finish_reason).not.toBe('stop')
    } else expect(ends[0]!.finish_reason).not.toBe('tool_calls')
    if (!extensions.includes('tools')) {
      expect(outputs).toEqual([])
      expect(calls.length).toBe(isOwn ? clientCalls.length : 0)
    } else if (isChat) {
      const ran = calls.filter(({ name }) => !isOwn || name !== 'clientTool').map(({ id }) => id)
      expect(outputs.map(({ id }) => id).toSorted()).toEqual(ran.toSorted())
    }
    const traces = said.filter(({ choices, usage }) => choices.length === 0 && (usage ?? null) === null)
    judged.traces += traces.length
    const prompts = entries.filter(({ type, step }) => type === 'prompt' && step.startsWith('main'))
    expect(traces.length).toBe(extensions.includes('trace') ? prompts.length : 0)

    const shown = Array.from(body.matchAll(/"(?:tool_call_id|toolCallId)":"([^"]*)"/gu), ([, id]) => id!)
    for (const id of [...calls.map((call) => call.id), ...shown]) expect(id).toMatch(/^call_[0-9A-Za-z]{1,35}$/u)

    const text = encodeAll(entries, context, {}, textWire)
    const isSaid = entries.some((e) => e.type === 'step-start' && e.answer) || clientCalls.length === 0
    const words = deltas.map(({ delta, text: own }) => own ?? delta.content ?? '').join('')
    // A call that was denied because nobody could be asked is told behind the answer.
    const denied = said.flatMap(({ millrace }) => millrace?.denied ?? [])
    judged.denied += denied.length
    const silent = new Set(entries.flatMap(({ type, step }) => (type === 'request' ? [step] : [])))
    const told = entries.flatMap((e) =>
      e.type === 'tool-result' && e.outcome === 'denied' && e.toolName === 'approvalTool' && !silent.has(e.step)
        ? [{ toolCallId: toOpenAiCallId(e.toolCallId), toolName: e.toolName, reason: e.result }]
        : [],
    )
    expect(denied).toEqual(told)
    const aside = denied.map(({ toolName, reason }) => `${toolName}: ${reason}`).join('\n')
    const gap = text.body === '' || aside === '' ? '' : '\n\n'
    if (text.state === 'complete' && isSaid) expect(words).toBe(text.body + gap + aside)
  },
})

interface FoldedCall {
  id: string
  name: string
  json: string
}

/** Folds as the `openai` package does: id and name once, index 0, 1, 2 …, arguments joined. */
function callsOf(deltas: Frame['choices'][number]['delta'][]): FoldedCall[] {
  const calls: FoldedCall[] = []
  for (const {
    index,
    id,
    type,
    function: { name, arguments: json },
  } of deltas.flatMap((d) => d.tool_calls ?? [])) {
    if (id === undefined) {
      expect([type, name]).toEqual([undefined, undefined])
      calls[index]!.json += json
      continue
    }
    expect(type).toBe('function')
    expect(index).toBe(calls.length)
    calls.push({ id, name: name!, json })
  }
  return calls
}

function outcomesOf(entries: readonly Entry[], tool: string): Map<string, string | undefined> {
  return new Map(
    entries.flatMap((entry) => {
      return entry.type === 'tool-result' && entry.toolName === tool
        ? [[toOpenAiCallId(entry.toolCallId), entry.outcome] as const]
        : []
    }),
  )
}

/** The body that a client would put together. */
function foldFrames(frames: Frame[], { object, extensions }: OpenAiOptions): Partial<OpenAiBody> {
  const choices = frames.flatMap((frame) => frame.choices)
  const { id, created, model } = frames[0]!
  const { finish_reason } = choices.at(-1)!
  const usage = frames.at(-1)!.usage
  const traces = frames.flatMap(({ trace }) => (trace === undefined ? [] : [trace]))
  const [millrace] = frames.flatMap((frame) => frame.millrace ?? [])
  const open = millrace && { millrace }
  const base = { ...open, id, created, model, object, usage, ...(extensions!.includes('trace') && { trace: traces }) }
  if (object === 'text_completion') {
    const text = choices.map((choice) => choice.text).join('')
    return { ...base, choices: [{ text, index: 0, logprobs: null, finish_reason }] } as Partial<OpenAiBody>
  }
  const deltas = choices.map(({ delta }) => delta)
  const content = deltas.map((delta) => delta.content ?? '').join('')
  const reasoning = deltas.map((delta) => delta.reasoning_content ?? '').join('')
  const calls = callsOf(deltas).map((call) => {
    return { id: call.id, type: 'function', function: { name: call.name, arguments: call.json } }
  })
  const outputs = deltas.flatMap((delta) => delta.tool_outputs ?? [])
  const message = {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    refusal: null,
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(outputs.length > 0 && { tool_outputs: outputs }),
  }
  return { ...base, choices: [{ index: 0, message, logprobs: null, finish_reason }] } as Partial<OpenAiBody>
}

describe('OpenAI wire', () => {
  test('openai: the random runs were of every kind', () => {
    for (const count of Object.values(judged)) expect(count).toBeGreaterThan(0)
  })

  test('the one JSON equals the joined frames of the same run', () => {
    let bodies = 0
    fc.assert(
      fc.property(runs, asked, (entries, openai) => {
        const options = { ...openai, includeUsage: true }
        const context = { resumedAt: lastResume(entries) }
        const frames = framesOf(encodeAll(entries, context, options).body)
        const encoder = openaiJsonWire.createEncoder(context, options)
        const results = entries.flatMap((entry) => encoder.encode(entry))
        expect(results).toHaveLength(1)
        const result = results[0]!
        const { error } = frames.at(-1)!
        if ('error' in result) expect(error).toMatchObject({ message: result.error.message, code: result.error.code })
        else {
          bodies++
          expect(error).toBe(undefined)
          expect(JSON.parse(JSON.stringify(result.body))).toEqual(foldFrames(frames, options))
        }
      }),
      { numRuns: often(300) },
    )
    expect(bodies).toBeGreaterThan(often(300) / 6)
  })

  test('openai: any byte cut decodes alike, keep-alives included', () => {
    fc.assert(
      fc.property(arbitraryRun, fc.array(fc.nat(), { maxLength: 20 }), (entries, places) => {
        const bytes = new TextEncoder().encode(openaiWire.keepAlive + encodeAll(entries).body)
        expect(parseSse(...cutAt(bytes, places))).toEqual(parseSse(bytes))
      }),
    )
  })

  test('openai: the official clients come to the same answer, and to an error where there is none', async () => {
    const seen = { completions: 0, errors: 0, calls: 0 }
    await fc.assert(
      fc.asyncProperty(runs, async (entries) => {
        const resumedAt = lastResume(entries)
        const { body } = encodeAll(entries, { resumedAt }, { includeUsage: true })
        const result = complete(entries, { includeUsage: true }, resumedAt)
        const helper = await readStream(body)
        const parts = await readSdkParts(body)
        if ('error' in result) {
          seen.errors++
          expect(helper.error?.message).toContain(result.error.message)
          expect(parts).toContainEqual({
            type: 'error',
            error: expect.objectContaining({ message: result.error.message }),
          })
          expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'error' } })
          return
        }
        seen.completions++
        const { choices, usage } = result.body
        const { message, finish_reason } = choices[0] as Extract<typeof choices, [{ message: unknown }]>[0]
        const got = helper.completion!.choices[0]!
        expect(got).toMatchObject({ finish_reason, message: { role: 'assistant', content: message.content ?? '' } })
        expect(got.message.tool_calls).toEqual(message.tool_calls)
        expect(helper.completion!.usage).toEqual(usage)
        seen.calls += message.tool_calls?.length ?? 0
        const joined = (type: 'text-delta' | 'reasoning-delta') =>
          parts.flatMap((part) => (part.type === type ? [part.delta] : [])).join('')
        expect(joined('text-delta')).toBe(message.content ?? '')
        expect(joined('reasoning-delta')).toBe(message.reasoning_content ?? '')
        const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part] : []))
        expect(calls.map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input])).toEqual(
          (message.tool_calls ?? []).map((call) => [call.id, call.function.name, call.function.arguments]),
        )
        const reason = finish_reason.replace('_', '-')
        expect(parts.at(-1)).toMatchObject({
          type: 'finish',
          finishReason: { unified: reason },
          usage: { inputTokens: { total: usage.prompt_tokens }, outputTokens: { total: usage.completion_tokens } },
        })
      }),
      { numRuns: 150 },
    )
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0)
  })
})
