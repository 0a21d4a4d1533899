/** The meaning of a `RunAgentInput` for the thread: it replies to requests of the thread's run, or begins a turn. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import { MillraceError } from '../../part/error.ts'
import type { KeptRun } from '../../fold/kept-run.ts'
import type { Message } from '../../part/message.ts'
import { hasRole } from '../../part/principal.ts'
import type { HistoryPolicy } from '../../pipeline/pipeline.ts'
import { type Turn, newestRun, activeRun, keyOf } from '../../runtime/continue.ts'
import { newMessages } from '../../runtime/history.ts'
import type { Agent, Runtime } from '../../runtime/runtime.ts'
import type { AgUiMessage } from '../../wire/ag-ui/ag-ui-event.ts'
import { agUiWire } from '../../wire/ag-ui/ag-ui.ts'
import { fromAgUiMessages } from '../../wire/ag-ui/from-ag-ui-messages.ts'
import { readResume, toolResults, type Resumed } from '../../wire/ag-ui/ag-ui-answers.ts'
import { bad, toArray, toFields, toString, type Fields } from '../../wire/ui/ui-parts.ts'
import { optionalText } from '../http/body.ts'
import { agentOfTurn, readPipeline, type Editor } from '../turn/own-pipeline.ts'

export interface AgUiTurn {
  turn: Turn
  /**
   * For the MESSAGES_SNAPSHOT of a new run, if the client keeps the history: its own messages. The client appends messages with unknown ids at the
   * end.
   */
  messages: AgUiMessage[] | undefined
  /** Warnings about ignored parts of the request. */
  warnings: string[]
}

/**
 * A new user message begins a turn, which closes open requests. Any other request must reply to all open interrupts at once, as the protocol
 * demands. Throws `interrupts-open` (409), or `bad-input` (400).
 */
export async function toAgUiTurn(
  { store, redact, roles, threadId: toThread }: Runtime,
  { id: agentId, pipeline }: Agent,
  asked: AgUiRequest,
  { traceparent, history, own }: { traceparent?: string | null; history: HistoryPolicy; own: string | null },
): Promise<AgUiTurn> {
  const { runId, parentRunId, messages, results, resume, input } = asked
  const threadId = toThread(asked.threadId)
  const stored = (await activeRun(store, threadId))?.stored
  // Also for a completed run: another client may have been faster.
  const asker = stored ?? (resume.length === 0 ? undefined : (await newestRun(store, threadId))?.stored)
  const known = new Set([...(asker?.requests ?? []), ...(asker?.ended ?? [])].map(({ requestId }) => requestId))
  const answers = resume.filter(({ requestId }) => known.has(requestId))
  const unknown = resume.filter(({ requestId }) => !known.has(requestId))
  const isDropped = saysMore(messages, stored) && stored !== undefined && dropsInterrupts(stored, answers)
  if (!isDropped) checkCoverage(stored, { messages, answers, roles })
  const fromServer = (pipeline.history ?? history) === 'server'
  const turn: Turn = {
    agentId,
    threadId,
    messages: fromServer ? await newMessages(store, threadId, messages) : messages,
    answers: isDropped
      ? []
      : [...results.filter(({ toolCallId }) => !isDecided(toolCallId, stored, answers)), ...answers],
    input,
    protocol: agUiWire.name,
    labels: omitUndefined({ runId, parentRunId }) as Record<string, string>,
    onBusy: 'interrupt',
    steers: true,
    history,
    // The same request again reads the run of the first one. With another question it is a new request, whatever its id.
    turnKey: keyOf(
      `run:${runId}`,
      messages.findLast(({ role }) => role === 'user'),
      asked.pipeline,
    ),
    pipeline: own,
    ...omitUndefined({ traceparent, mcpHeaders: asked.mcpHeaders }),
  }
  const warnings = unknown.map(({ requestId }) => {
    return `resume[] answers the interrupt ${requestId.slice(0, 100)}, which this thread has not asked: ignored.`
  })
  return { turn, messages: fromServer ? undefined : redact(asked.shown), warnings }
}

/** The agent as a request has it: `forwardedProps.pipeline` is YAML for this run. */
export async function agentOfRequest(
  context: Editor & { runtime: Runtime },
  request: Pick<Request, 'headers'>,
  file: Agent,
  { threadId, pipeline }: AgUiRequest,
): Promise<{ agent: Agent; own: string | null }> {
  const text = readPipeline(context, request, { pipeline }, { agent: file.id, place: 'forwardedProps.pipeline' })
  const { agent, pipeline: own } = await agentOfTurn(context, file, { threadId, ...omitUndefined({ pipeline: text }) })
  return { agent, own }
}

/**
 * Whether a call waits for approval, or this request approves it: then a tool message is not its result. CopilotKit's `useInterrupt` sends one
 * beside resume[], with the decision in it.
 */
function isDecided(toolCallId: string, stored: KeptRun | undefined, answers: AgUiRequest['resume']): boolean {
  const { requests = [], ended = [] } = stored ?? {}
  if (requests.some((request) => request.kind === 'approval' && request.toolCallId === toolCallId)) return true
  const named = new Set(answers.map(({ requestId }) => requestId))
  return ended.some((request) => request.toolCallId === toolCallId && named.has(request.requestId))
}

/** Whether the user's last message is new to the run. */
function saysMore(messages: readonly Message[], stored: KeptRun | undefined): boolean {
  const last = messages.at(-1)
  if (last?.role !== 'user') return false
  const told = stored?.asked.findLast(({ role }) => role === 'user')
  return told === undefined || last.id === undefined || last.id !== told.id
}

/** A client must name the interrupts that it drops. A request that replies to some and has a new message would lose either. */
function dropsInterrupts({ requests }: KeptRun, answers: AgUiRequest['resume']): boolean {
  if (answers.every(({ isCancelled }) => isCancelled)) return true
  const isOpen = answers.some(({ requestId }) => requests.some((request) => request.requestId === requestId))
  if (!isOpen) return true
  const cure = 'Send the answer first, and the message when that run has finished.'
  throw new MillraceError('bad-input', `resume answers an interrupt, and messages ends with a new message. ${cure}`, {
    status: 400,
  })
}

function checkCoverage(
  stored: KeptRun | undefined,
  {
    messages,
    answers,
    roles,
  }: { messages: readonly Message[]; answers: AgUiRequest['resume']; roles: Runtime['roles'] },
): void {
  if (stored?.status !== 'suspended') return
  // Without a reply to any of them, the same question again is a new turn, too.
  if (answers.length === 0 && messages.at(-1)?.role === 'user') return
  const covered = new Set(answers.map(({ requestId }) => requestId))
  // Those that somebody else must answer were no interrupts for this client.
  const isAsked = ({ kind, roles: needed }: KeptRun['requests'][number]) => kind !== 'tool' && hasRole(roles, needed)
  const open = stored.requests.filter((request) => isAsked(request) && !covered.has(request.requestId))
  if (open.length === 0) return
  const ids = open.slice(0, 20).map(({ requestId }) => requestId)
  const cure = 'answer or cancel each of them in resume[], or send a new message of the user, which closes them.'
  throw new MillraceError('interrupts-open', `The thread has open interrupts (${ids.join(', ')}): ${cure}`, {
    status: 409,
  })
}

/** Reads a `RunAgentInput` of AG-UI, 1.0 or older. The input is untrusted: every field is checked, and errors name its place. */
export interface AgUiRequest {
  threadId: string
  /** The client's id for the new AG-UI run. */
  runId: string
  parentRunId?: string
  /** The client is older than 1.0. */
  old: boolean
  messages: Message[]
  /** The messages in the client's form, if each has an id. */
  shown: AgUiMessage[] | undefined
  results: ReturnType<typeof toolResults>
  resume: Resumed[]
  /** `$input`, without the messages. */
  input: Record<string, unknown>
  /** `forwardedProps.mcpHeaders`, which is neither input nor stored. */
  mcpHeaders: unknown
  /** `forwardedProps.pipeline`, which is no input. Unchecked. */
  pipeline: unknown
}

const maxTools = 128

/** Throws `bad-input` (400). */
export function readRunInput(body: Fields): AgUiRequest {
  const messages = fromAgUiMessages(body['messages'])
  const parentRunId = optionalText(body, 'parentRunId')
  const { mcpHeaders, pipeline, ...forwardedProps } = readProps(body['forwardedProps'])
  const state = body['state'] ?? undefined
  return {
    threadId: requiredText(body, 'threadId'),
    runId: requiredText(body, 'runId'),
    ...(parentRunId !== undefined && { parentRunId }),
    old: optionalText(body, 'protocolVersion') === undefined,
    messages,
    shown: toShown(body['messages']),
    results: toolResults(body['messages']),
    resume: readResume(body['resume']),
    input: {
      tools: readTools(body['tools'] ?? []),
      context: readContext(body['context'] ?? []),
      forwardedProps,
      ...(state !== undefined && { state }),
    },
    mcpHeaders,
    pipeline,
  }
}

/** Already checked with the messages. Null stands for a missing value. */
function toShown(messages: unknown): AgUiMessage[] | undefined {
  const shown = (messages as Fields[]).map((message) =>
    Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)),
  )
  return shown.every(({ id }) => id !== undefined) ? (shown as unknown as AgUiMessage[]) : undefined
}

function requiredText(body: Fields, name: string): string {
  const text = optionalText(body, name)
  if (text === undefined) throw new MillraceError('bad-input', `${name} is missing.`, { status: 400 })
  return text
}

function readProps(value: unknown): Fields {
  if (value === undefined || value === null) return {}
  return toFields(value, 'forwardedProps')
}

/** In the client's form, without null: the engine reads names, descriptions and parameters; `metadata` may require approval. */
function readTools(value: unknown): Fields[] {
  const list = toArray(value, 'tools')
  if (list.length > maxTools) throw bad('tools', `has ${list.length} entries; at most ${maxTools} are allowed.`)
  return list.map((item, i) => {
    const place = `tools[${i}]`
    const tool = toFields(item, place)
    const name = toString(tool['name'], `${place}.name`)
    if (!/^[\w.:-]{1,64}$/u.test(name)) throw bad(`${place}.name`, 'must be 1 to 64 letters, digits, _, -, . or :.')
    const made: Fields = { name }
    if (tool['description'] != null) made['description'] = toString(tool['description'], `${place}.description`)
    const { parameters, metadata } = tool
    if (parameters != null) made['parameters'] = toFields(parameters, `${place}.parameters`)
    if (metadata != null) made['metadata'] = toFields(metadata, `${place}.metadata`)
    if (tool['confirm'] === true) made['confirm'] = true
    return made
  })
}

function readContext(value: unknown): Fields[] {
  return toArray(value, 'context').map((item, i) => {
    const place = `context[${i}]`
    const { description, value: text } = toFields(item, place)
    return {
      description: toString(description, `${place}.description`),
      value: toString(text, `${place}.value`),
    }
  })
}
