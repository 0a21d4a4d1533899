/** The required shape of entries of each type. A field that is added to a part and not here does not compile. */
import type { EntryOf, Envelope } from './entry.ts'
import type { ErrorValue } from './error.ts'
import { message, metadata, toolSpec, userContent } from './message-shapes.ts'
import type { FileData, FinishReason, ToolOutcome } from './model-part.ts'
import { ownValue } from './own-value.ts'
import {
  messageOutcomes,
  summaryReasons,
  outcomes,
  type PartType,
  type RunStart,
  type ResponseHead,
  type CallSettings,
  type ScriptStart,
} from './part.ts'
import { roles, type Actor, type Claim, type Role, type RunUser } from './principal.ts'
import type { Reply } from './request-part.ts'
import {
  anything,
  flag,
  listOf,
  nameUpTo,
  numberFrom,
  objectOf,
  oneOf,
  optional,
  recordOf,
  text,
  textOr,
  valueOf,
  variantOf,
  wholeFrom,
  yes,
  type FieldShapes,
  type Look,
  type Shape,
} from './shape.ts'
import { stepKinds } from './step-kind.ts'
import type { Usage } from './usage.ts'

type Body<T extends PartType> =
  EntryOf<T> extends infer E ? (E extends unknown ? Omit<E, keyof Envelope | 'type'> : never) : never

/** Ids of runs and threads, names of agents: they are keys, and stand in addresses and in names of files. */
export const id = nameUpTo(256)
/** A client's id of it, and its owner: see `scopedThread`. */
export const threadId = nameUpTo(2048)
/** That of a request begins with the id of its run. */
const requestId = nameUpTo(320)
const name = nameUpTo(256)
/** Epoch ms, up to the year 9999: the range of every clock, date and column. */
export const lastTime = 253_402_300_799_999
export const time = numberFrom(0, lastTime)
const duration = numberFrom(-lastTime, lastTime)
/** Of tokens. CLI agents correct sums, so they may be negative; sums of many must fit into a column. */
const tokens = optional(numberFrom(-1e11, 1e11))
const cost = optional(numberFrom(-1e9, 1e9))
const attempt = wholeFrom(1, 1_000_000)
const count = wholeFrom(0, 1e12)
const labels = optional(recordOf(text))
const ownHeaders = optional(listOf(text))

export const usage = objectOf<Usage>({
  inputTokens: tokens,
  outputTokens: tokens,
  totalTokens: tokens,
  reasoningTokens: tokens,
  cachedInputTokens: tokens,
  cacheWriteInputTokens: tokens,
  // Other programs leave it out.
  source: optional(oneOf('reported', 'estimated')) as Shape<unknown> as Shape<Usage['source']>,
})

const claim = valueOf<Claim>('a text, a number, true or false', (value) =>
  ['string', 'number', 'boolean'].includes(typeof value),
)

const role = oneOf(...roles)

const user = objectOf<RunUser>({
  id,
  tenant: optional(id),
  name: optional(name),
  roles: optional(listOf(role)) as Shape<readonly Role[] | undefined>,
  claims: optional(recordOf(claim)),
  key: optional(name),
})

const actor = objectOf<Actor>({ id, tenant: optional(id), name: optional(name) })

const errorValue = objectOf<ErrorValue>({
  code: text,
  message: text,
  status: optional(numberFrom(0, 999)),
  retryAfter: optional(numberFrom(0, 1e9)),
  step: optional(text),
  which: optional(text),
  detail: optional(text),
})

/** The messages of an input are read by everybody; the rest is the agent's business. */
const input: Shape<Record<string, unknown>> = (value, isStrict) => {
  const found = recordOf(anything)(value, isStrict)
  if (found !== undefined) return found
  const { messages } = value as { messages?: unknown }
  const wrong = Array.isArray(messages) ? listOf(message)(messages, isStrict) : undefined
  return wrong && `.messages${wrong}`
}

const settings = objectOf<CallSettings>({
  temperature: optional(numberFrom(-1e9, 1e9)),
  topP: optional(numberFrom(-1e9, 1e9)),
  maxOutputTokens: optional(numberFrom(-1e15, 1e15)),
  stopSequences: optional(listOf(text)),
  seed: optional(numberFrom(-1e15, 1e15)),
  presencePenalty: optional(numberFrom(-1e9, 1e9)),
  frequencyPenalty: optional(numberFrom(-1e9, 1e9)),
  reasoning: optional(oneOf('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
  toolChoice: optional(
    textOr(objectOf({ tool: text })) as Shape<unknown> as Shape<NonNullable<CallSettings['toolChoice']>>,
  ),
  responseFormat: optional(
    objectOf<NonNullable<CallSettings['responseFormat']>>({
      type: oneOf('json'),
      schema: optional(recordOf(anything)),
      name: optional(text),
      description: optional(text),
    }),
  ),
  providerOptions: optional(recordOf(recordOf(anything))),
})

const pair = valueOf<[string, string]>(
  'a name and a value',
  (value) => Array.isArray(value) && value.length === 2 && value.every((each) => typeof each === 'string'),
)

const head = objectOf<ResponseHead>({
  status: wholeFrom(100, 599),
  statusText: optional(text),
  headers: listOf(pair),
  binary: optional(yes),
})

const forkedFrom = objectOf<NonNullable<RunStart['forkedFrom']>>({
  runId: id,
  seq: wholeFrom(1, Number.MAX_SAFE_INTEGER),
  at: optional(time),
})

const answer = variantOf<Reply, 'kind'>('kind', {
  tool: objectOf<Extract<Reply, { kind: 'tool' }>>({
    kind: oneOf('tool'),
    output: anything,
    isError: optional(flag),
  }),
  approval: objectOf<Extract<Reply, { kind: 'approval' }>>({
    kind: oneOf('approval'),
    approved: flag,
    reason: optional(text),
    input: anything,
  }),
  // A value, or that there is none.
  input: anything as Shape<Extract<Reply, { kind: 'input' }>>,
})

const fileData = textOr(objectOf<Extract<FileData, { type: 'url' }>>({ type: oneOf('url'), url: text }))

const block = { id: text, providerMetadata: metadata }
const delta: FieldShapes<Body<'text-delta'>> = { ...block, delta: text }

/** Providers' own words and counts are not checked further: their readers expect anything. */
const loose = <T>() => anything as Shape<unknown> as Shape<T>

const source: Shape<Body<'source'>> = (value, isStrict) =>
  (value as { sourceType?: unknown }).sourceType === 'url'
    ? urlSource(value, isStrict)
    : documentSource(value, isStrict)
const urlSource = objectOf<Omit<Extract<EntryOf<'source'>, { sourceType: 'url' }>, keyof Envelope | 'type'>>({
  sourceType: oneOf('url'),
  id: text,
  url: text,
  title: optional(text),
  providerMetadata: metadata,
})
const documentSource = objectOf<Omit<Extract<EntryOf<'source'>, { sourceType: 'document' }>, keyof Envelope | 'type'>>({
  sourceType: oneOf('document'),
  id: text,
  mediaType: text,
  title: text,
  filename: optional(text),
  providerMetadata: metadata,
})

const request: Shape<Body<'request'>> = (value, isStrict) =>
  (value as { kind?: unknown }).kind === 'input' ? inputRequest(value, isStrict) : toolRequest(value, isStrict)
const toolRequest = objectOf<Omit<Extract<EntryOf<'request'>, { toolCallId: string }>, keyof Envelope | 'type'>>({
  requestId,
  kind: oneOf('tool', 'approval'),
  toolCallId: text,
  toolName: text,
  input: anything,
  roles: optional(listOf(role)) as Shape<readonly Role[] | undefined>,
  deadline: time,
})
const inputRequest = objectOf<
  Omit<
    Extract<EntryOf<'request'>, { kind: 'input' }>,
    keyof Envelope | 'type' | 'toolCallId' | 'toolName' | 'input' | 'roles'
  >
>({
  requestId,
  kind: oneOf('input'),
  reason: optional(text),
  message: optional(text),
  schema: optional(recordOf(anything)),
  metadata: optional(recordOf(anything)),
  deadline: time,
})

const fields: { readonly [T in PartType]: FieldShapes<Body<T>> | Shape<Body<T>> } = {
  'stream-start': { warnings: loose() },
  'response-metadata': {
    id: optional(loose()),
    modelId: optional(loose()),
    responseTimestamp: optional(loose()),
  },
  'text-start': block,
  'text-delta': delta,
  'text-end': { ...block, citations: optional(loose()) },
  'reasoning-start': block,
  'reasoning-delta': delta,
  'reasoning-end': block,
  'tool-input-start': {
    ...block,
    toolName: text,
    providerExecuted: optional(flag),
    dynamic: optional(flag),
    title: optional(text),
    inputEncoding: optional(loose()),
    providerCallId: optional(text),
  },
  'tool-input-delta': delta,
  'tool-input-end': block,
  'tool-call': {
    toolCallId: text,
    toolName: text,
    input: text,
    providerExecuted: optional(flag),
    dynamic: optional(flag),
    providerCallId: optional(text),
    providerMetadata: metadata,
    via: optional(oneOf<'script'>('script')),
  },
  'tool-result': {
    toolCallId: text,
    toolName: text,
    result: loose(),
    isError: optional(flag),
    preliminary: optional(flag),
    dynamic: optional(flag),
    outcome: optional(oneOf<ToolOutcome>('denied', 'aborted', 'unavailable', 'handed-over')),
    providerMetadata: metadata,
  },
  'tool-approval-request': { approvalId: text, toolCallId: text, providerMetadata: metadata },
  source,
  file: { mediaType: text, data: fileData, providerMetadata: metadata },
  'reasoning-file': { mediaType: text, data: fileData, providerMetadata: metadata },
  custom: { kind: text, providerMetadata: metadata },
  finish: {
    usage: loose(),
    finishReason: objectOf<FinishReason>({ unified: loose(), raw: loose() }),
    providerMetadata: metadata,
  },
  raw: { rawValue: anything },
  error: { error: errorValue },
  'run-start': {
    runId: id,
    agent: name,
    pipeline: text,
    ownPipeline: optional(flag),
    threadId,
    parentRunId: optional(id),
    forkedFrom: optional(forkedFrom),
    user: optional(user),
    protocol: name,
    labels,
    wireOptions: optional(recordOf(anything)),
    traceparent: optional(text),
    input,
    previousRunId: optional(id),
    handOver: optional(flag),
    noClientTools: optional(flag),
    foreign: optional(wholeFrom(0, Number.MAX_SAFE_INTEGER)),
    settings: optional(settings),
    ownHeaders,
  },
  'step-start': {
    stepType: name,
    kind: optional(oneOf(...stepKinds)),
    attempt,
    answer: optional(yes),
    toolCallId: optional(text),
    toolName: optional(text),
    agent: optional(name),
    pipeline: optional(text),
    handoff: optional(yes),
    order: optional(listOf(text)),
    object: optional(yes),
    items: optional(listOf(anything)) as Shape<readonly unknown[] | undefined>,
    covers: optional(count),
    script: optional(objectOf<ScriptStart>({ engine: text, seed: text })),
    head: optional(head),
  },
  'step-finish': {
    duration,
    result: anything,
    usage: optional(usage),
    finishReason: optional(text),
    error: optional(errorValue),
  },
  prompt: {
    stage: text,
    model: text,
    system: optional(text),
    messages: listOf(message),
    shortened: optional(listOf(text)),
    tools: optional(listOf(toolSpec)),
    settings: optional(settings),
  },
  'answer-end': { finishReason: text, usage },
  usage: { model: text, usage, cost },
  request,
  response: {
    requestId,
    outcome: oneOf('answered', 'closed'),
    answer: optional(answer),
    reason: optional(text),
    protocol: optional(text),
    by: optional(actor),
  },
  suspend: { requests: listOf(text) },
  resume: {
    protocol: name,
    labels,
    input: optional(input),
    agent: optional(name),
    pipeline: optional(text),
    ownPipeline: optional(flag),
    ownHeaders,
  },
  retry: { attempt, model: optional(text), delay: duration, error: errorValue },
  warning: { code: text, message: text },
  'session-info': { sessionId: text, model: optional(text), providerMetadata: metadata },
  'cli-output': { stream: oneOf('stdout', 'stderr'), raw: text },
  data: { name: text, id: optional(text), data: anything, transient: optional(flag) },
  message: {
    id: text,
    content: userContent,
    protocol: name,
    by: optional(actor),
    sentAt: time,
    labels,
    turn: optional(yes),
    outcome: optional(oneOf(...messageOutcomes)),
    runId: optional(id),
  },
  summarized: {
    upTo: count,
    text: optional(text),
    before: count,
    after: count,
    reason: oneOf(...summaryReasons),
    hash: text,
    shortened: optional(listOf(text)),
  },
  'step-reset': { attempt },
  'run-end': {
    outcome: oneOf(...outcomes),
    output: anything,
    usage,
    cost,
    error: optional(errorValue),
  },
}

const looks = new Map<string, Look>()

/** How to look at the entries of a type, without their envelope. Undefined for an unknown type. */
export function lookAt(type: string): Look | undefined {
  const known = looks.get(type)
  if (known !== undefined) return known
  const found = ownValue(fields, type) as Look | object | undefined
  if (found === undefined) return undefined
  const look = typeof found === 'function' ? (found as Look) : objectOf(found as FieldShapes<object>)
  looks.set(type, look)
  return look
}
