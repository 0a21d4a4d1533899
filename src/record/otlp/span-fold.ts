/**
 * Folds the log of a run into spans, named as in OpenTelemetry's conventions for generative AI: the run and each agent that it calls
 * is `invoke_agent`, a model call `chat`, a tool call `execute_tool`; other steps have their own name. Without `content`, no text of
 * users, models, tools or errors is in them. Spans of the entries that a fork shares are its source's.
 */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Entry, EntryOf } from '../../part/entry.ts'
import { parentPath, isUnder } from '../../part/path.ts'
import { addUsage } from '../../part/usage.ts'
import { kindOf } from '../../part/step-kind.ts'
import { callKey } from '../../fold/open-items.ts'
import { createUsageFold, sumUsed } from '../../fold/usage-fold.ts'
import { traceRootOf, resetsAt, spanIdOf } from '../../fold/trace-place.ts'
import {
  createContent,
  type Content,
  chatStart,
  priceAttributes,
  stepStart,
  usageAttributes,
  groupAttributes,
} from './attributes.ts'
import { sharedTo, startOf } from '../../fold/run-view.ts'
import type { Attributes, Span } from './span.ts'

/** The common data of a run's spans. */
export interface SpanOptions {
  /** Also for a run whose caller has asked not to record its trace. Default false. */
  unsampled?: boolean
  /** Also prompts, answers, the input and output of tools, and messages of errors. Default false. */
  content?: boolean
}

export interface SpanFold {
  apply(entry: Entry): void
  /** The spans so far. Those of a run that goes on end with its last entry and are `millrace.incomplete`. */
  spans(): Span[]
}

/** The spans of a run. Empty if its caller has asked not to record the trace. */
export function spansOf(entries: Iterable<Entry>, options?: SpanOptions): Span[] {
  const fold = createSpanFold(options)
  for (const entry of entries) fold.apply(entry)
  return fold.spans()
}

export function createSpanFold({ content = false, unsampled = false }: SpanOptions = {}): SpanFold {
  const contents = new Map<string, Content>()
  const reports = new Map<string, Pick<EntryOf<'usage'>, 'usage' | 'cost'>>()
  const spoken = new Set<string>()
  /** Arguments of calls whose step has not begun. */
  const inputs = new Map<string, string>()
  /** The models of CLI agents, which record no prompt of a model call. */
  const models = new Map<string, string>()
  const used = createUsageFold()
  let run: EntryOf<'run-start'> | undefined
  let spans: OpenSpans
  let lastAt = 0
  /** Of a fork, until its first own entry: the last entry that it shares. */
  let sharedSeq = 0

  function forget(key: string): void {
    contents.delete(key)
    reports.delete(key)
    spoken.delete(key)
  }

  function startRun(entry: EntryOf<'run-start'>): void {
    run = entry
    sharedSeq = sharedTo(entry)
    spans = createOpenSpans(entry, forget)
    const { runId, agent, threadId, protocol, parentRunId, timestamp: at } = entry
    const attributes = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': agent,
      'gen_ai.conversation.id': threadId,
      'millrace.run.id': runId,
      'millrace.protocol': protocol,
      'millrace.parent_run.id': parentRunId,
    }
    spans.begin('', { path: '', at }, { name: `invoke_agent ${agent}`, kind: 'internal', attributes })
  }

  function startStep(entry: EntryOf<'step-start'>): void {
    const { step: path, timestamp: at } = entry
    const span = spans.begin(path, { path, above: parentPath(path), at }, stepStart(entry, run!.threadId))
    name(span, models.get(parentPath(path)))
    if (content && kindOf(entry) === 'model-call') contents.set(path, createContent())
  }

  function startCall(entry: EntryOf<'tool-call'>): void {
    const { step: path, toolCallId, toolName, input, providerExecuted, timestamp: at } = entry
    const around = spans.get(path)
    // Other calls have a step of their own.
    if (providerExecuted !== true && around?.attributes['millrace.step.type'] !== 'cli-agent') {
      if (content) inputs.set(callKey(path, toolCallId), input)
      return
    }
    const attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': toolName,
      'gen_ai.tool.call.id': toolCallId,
      'gen_ai.tool.type': 'extension',
      'gen_ai.tool.call.arguments': content ? input : undefined,
    }
    const key = callKey(path, toolCallId)
    spans.begin(key, { path, above: path, at }, { name: `execute_tool ${toolName}`, kind: 'internal', attributes })
  }

  function endCall(entry: EntryOf<'tool-result'>): void {
    const { step, toolCallId, result, isError, outcome, preliminary, timestamp } = entry
    if (preliminary === true) return
    const foreign = spans.get(callKey(step, toolCallId))
    const span = foreign ?? spans.get(step)
    if (span?.attributes['gen_ai.tool.call.id'] !== toolCallId) return
    span.attributes['millrace.tool.outcome'] = outcome
    if (isError === true) span.error = { type: outcome ?? 'tool_error' }
    if (content) {
      span.attributes['gen_ai.tool.call.arguments'] ??= inputs.get(callKey(step, toolCallId))
      span.attributes['gen_ai.tool.call.result'] = typeof result === 'string' ? result : JSON.stringify(result)
    }
    if (foreign !== undefined) spans.end(callKey(step, toolCallId), timestamp)
  }

  function name(span: Span, model: string | undefined): void {
    if (model === undefined || span.attributes['gen_ai.operation.name'] !== 'chat') return
    if (span.attributes['gen_ai.request.model'] === undefined) Object.assign(span, chatStart(model, span.attributes))
  }

  /** A CLI agent reports in pieces. */
  function addTo(span: Span, { step, model, usage, cost }: EntryOf<'usage'>): void {
    name(span, model)
    const before = reports.get(step)
    const sum = {
      usage: addUsage(before?.usage, usage),
      ...omitUndefined({ cost: before === undefined ? cost : plus(before.cost, cost) }),
    }
    reports.set(step, sum)
    Object.assign(span.attributes, usageAttributes(sum.usage), { 'gen_ai.usage.cost': sum.cost })
  }

  function fail(span: Span, { code, message }: { code: string; message: string }): void {
    span.error = content ? { type: code, message } : { type: code }
  }

  function endRun({ outcome, error, usage, cost, timestamp }: EntryOf<'run-end'>): void {
    spans.endUnder('', timestamp)
    const root = spans.get('')
    if (root === undefined) return
    if (error !== undefined) fail(root, error)
    else if (outcome !== 'completed') root.error = { type: outcome }
    const price =
      cost === undefined ? priceAttributes(sumUsed(used.read().usageByModel)) : { 'gen_ai.usage.cost': cost }
    spans.end('', timestamp, { 'millrace.outcome': outcome, ...usageAttributes(usage), ...price })
  }

  function note(name: string, { timestamp: time, step }: Entry, attributes: Attributes = {}): void {
    spans.around(step)?.events.push({ name, time, attributes })
  }

  function apply(entry: Entry): void {
    lastAt = Math.max(lastAt, entry.timestamp)
    if (entry.type === 'run-start') return startRun(entry)
    if (run === undefined) return
    if (sharedSeq > 0 && entry.seq > sharedSeq) {
      sharedSeq = 0
      spans.cut(startOf(run))
    }
    contents.get(entry.step)?.apply(entry)
    used.apply(entry)
    const span = spans.get(entry.step)
    switch (entry.type) {
      case 'step-start':
        return startStep(entry)
      case 'step-reset':
        return spans.reset(entry)
      case 'run-end':
        return endRun(entry)
      case 'tool-call':
        return startCall(entry)
      case 'tool-result':
        return endCall(entry)
      case 'suspend':
      case 'resume':
        return note(entry.type, entry)
      case 'message':
        return note('message', entry, {
          'millrace.message.waited': Math.max(0, entry.timestamp - entry.sentAt),
          'millrace.message.outcome': entry.outcome ?? 'delivered',
        })
      case 'retry':
        return note('retry', entry, { 'error.type': entry.error.code, 'millrace.attempt': entry.attempt })
      default:
        if (span !== undefined) applyTo(span, entry)
    }
  }

  function applyTo(span: Span, entry: Entry): void {
    switch (entry.type) {
      case 'prompt':
        name(span, entry.model)
        break
      case 'session-info':
        if (entry.model !== undefined) models.set(entry.step, entry.model)
        break
      case 'response-metadata':
        span.attributes['gen_ai.response.id'] = entry.id
        span.attributes['gen_ai.response.model'] = entry.modelId
        break
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-delta':
        if (span.kind !== 'client' || spoken.has(entry.step)) break
        spoken.add(entry.step)
        span.attributes['gen_ai.response.time_to_first_chunk'] = (entry.timestamp - span.startedAt) / 1000
        break
      case 'usage':
        addTo(span, entry)
        break
      case 'step-finish': {
        const { step, timestamp, error, finishReason } = entry
        if (error !== undefined) fail(span, error)
        const reasons = span.kind === 'client' && finishReason !== undefined ? [finishReason] : undefined
        spans.end(step, timestamp, { 'gen_ai.response.finish_reasons': reasons, ...contents.get(step)?.read() })
        break
      }
      default:
    }
  }

  return {
    apply,
    spans: () => (run !== undefined && (unsampled || traceRootOf(run).sampled) ? spans.all(lastAt) : []),
  }
}

function plus(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b
}

/** The spans of a run that are open and that have ended. A key is the path of a step, empty for the run, or that of a call. */
interface OpenSpans {
  get(key: string): Span | undefined
  /** `path`: of the step that the span belongs to. Its parent is the innermost open step at or above `above`. */
  begin(key: string, place: { path: string; above?: string; at: number }, given: NamedSpan): Span
  end(key: string, at: number, attributes?: Attributes): Span | undefined
  /** Ends everything at or under a path, except the run. */
  endUnder(path: string, at: number, attributes?: Attributes): void
  /** The output of the step is superseded. */
  reset(entry: EntryOf<'step-reset'>): void
  /** A fork begins here: ended steps are its source's, and open ones continue from here. */
  cut(at: number): void
  /** The innermost open span at or above a path. */
  around(path: string): Span | undefined
  /** Those that are open end at `lastAt`. */
  all(lastAt: number): Span[]
}

type NamedSpan = Pick<Span, 'name' | 'kind' | 'attributes'>

/** `onEnd`: called with the key of each span that ends. */
function createOpenSpans(run: EntryOf<'run-start'>, onEnd: (key: string) => void): OpenSpans {
  const groups = groupAttributes(run)
  const { traceId, parentSpanId, sampled } = traceRootOf(run)
  const done: Span[] = []
  const open = new Map<string, Span>()
  const resets = new Map<string, number>()
  /** Keys of spans that a fork goes on with. */
  const shared = new Set<string>()

  function around(path: string): Span | undefined {
    for (let at = path; at !== ''; at = parentPath(at)) {
      const span = open.get(at)
      if (span !== undefined) return span
    }
    return open.get('')
  }

  function end(key: string, at: number, attributes: Attributes = {}): Span | undefined {
    const span = open.get(key)
    if (span === undefined) return undefined
    open.delete(key)
    onEnd(key)
    span.endedAt = Math.max(at, span.startedAt)
    Object.assign(span.attributes, attributes)
    done.push(span)
    return span
  }

  function endUnder(root: string, at: number, attributes?: Attributes): void {
    // Inner spans have begun later.
    for (const key of [...open.keys()].reverse()) {
      if (key !== '' && isUnder(pathOf(key), root)) end(key, at, attributes)
    }
  }

  return {
    get: (key) => open.get(key),
    begin(key, { path, above, at }, given) {
      const parent = above === undefined ? undefined : around(above)
      const parentId = parent?.spanId ?? parentSpanId
      const span: Span = {
        traceId,
        spanId: spanIdOf(run.runId, key, resetsAt(resets, path)),
        ...(parentId === undefined ? undefined : { parentSpanId: parentId }),
        ...given,
        attributes: { ...given.attributes, ...groups },
        startedAt: at,
        endedAt: at,
        flags: (sampled ? 0x1 : 0) | 0x100 | (parent === undefined && parentSpanId !== undefined ? 0x200 : 0),
        events: [],
      }
      open.set(key, span)
      return span
    },
    end,
    endUnder,
    reset({ step, timestamp }) {
      for (const key of [...shared].filter((each) => each !== '' && isUnder(pathOf(each), step))) {
        shared.delete(key)
        if (open.delete(key)) onEnd(key)
      }
      endUnder(step, timestamp, { 'millrace.superseded': true })
      resets.set(step, (resets.get(step) ?? 0) + 1)
    },
    cut(at) {
      done.length = 0
      for (const [key, span] of open) {
        shared.add(key)
        span.startedAt = Math.max(span.startedAt, at)
        span.events = []
      }
    },
    around,
    all: (lastAt) => [
      ...done,
      ...[...open.values()].map((span) => ({
        ...span,
        endedAt: Math.max(lastAt, span.startedAt),
        attributes: { ...span.attributes, 'millrace.incomplete': true },
      })),
    ],
  }
}

/** Of a call: the step of its loop. */
function pathOf(key: string): string {
  return key.split('\n', 1)[0]!
}
