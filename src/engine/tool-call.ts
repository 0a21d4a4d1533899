/**
 * Brings one tool call from its current state (new, waiting for a client, approved, or started before a crash) to its result. A
 * tool never fails a run: unknown names, bad input, thrown errors and timeouts become results for the model.
 */
import { anySignal } from '../async/any-signal.ts'
import { omitUndefined } from '../part/omit-undefined.ts'
import { messageOf, MillraceError, wholeMessage } from '../part/error.ts'
import { parseJson } from '../part/json.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { outcomeText } from '../fold/open-items.ts'
import type { ToolOutcome } from '../part/model-part.ts'
import type { Part } from '../part/part.ts'
import { isUnder, joinPath } from '../part/path.ts'
import type { Approval, ToolRequest } from '../part/request-part.ts'
import { kindOf, type StepKind } from '../part/step-kind.ts'
import type { ModelToolCall, ModelReply } from '../fold/reply-messages.ts'
import type { Inline, ToolUse } from '../pipeline/pipeline.ts'
import { parseToolInput, type ParsedInput } from '../tools/tool-input.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import { type OfferedAgent, inSlot, refusal, runAgentTool } from './agent-tools.ts'
import { signIn } from './mcp-sign-in.ts'
import { agentStep, settleHandoff } from './handoff.ts'
import { closeUnder, inStep, type NewStep, type Scope, traceparentOf } from './scope.ts'
import { searchEarlier } from './search-earlier.ts'

const defaultTimeout = 60_000

type CallKind = Extract<StepKind, 'tool-call' | 'client-tool' | 'approval'>
const cannotWait = 'it needs an approval, and this server cannot wait for one because its store is not durable'
const noClient = 'nobody can be asked inside of an agent tool or a script of this run'
const asApproval = { stepType: 'approval', kind: 'approval' } as const

/** A tool that a loop offers to the model. Without `implementation` it is the client's. */
export interface OfferedTool {
  spec: ToolSpec
  use?: ToolUse
  implementation?: ToolImplementation
  /** Every call must be approved before the tool runs, or before the client is asked to run it. */
  approval?: Approval
  /** The MCP server whose it is. */
  server?: string
  /** It runs this agent. */
  agent?: OfferedAgent
  /** The model does not see it until it has found it: see `tool-search.ts`. */
  deferred?: true
  /** The engine runs it, as steps below the call's. After a crash it goes on. */
  runs?: ToolRun
  /** Characters of its result that the model gets whole. */
  inline?: Inline
}

/** `path`: the step of the call. Throws only what ends more than this call. */
export type ToolRun = (scope: Scope, path: string, call: ToolRunCall) => Promise<Result>

export interface ToolRunCall {
  given: unknown
  toolCallId: string
  messages(): Message[]
  /** The step of the call was started before: by a process that has ended, or before the run waited. */
  resumed: boolean
}

export interface CallingLoop {
  root: string
  tools: ReadonlyMap<string, OfferedTool>
  messages(): Message[]
  /** The conversation for an agent that is called now, or that takes over. */
  before(how?: 'handoff'): Message[]
  /** Whether the loop is the answer. */
  answers: boolean
}

/** A tool of the request has the name of one of the agent's. */
export function sayTaken(scope: Scope, name: string): void {
  const message = `The request offers a tool "${name}". The agent has one of that name, and it is this one that runs.`
  scope.emit('', { type: 'warning', code: 'tool-name-taken', message })
}

/** Finishes the steps of calls whose result was the last entry before a crash. */
export async function closeSettled(scope: Scope, { calls }: ModelReply): Promise<void> {
  for (const { toolName, result, startedAt, approvalAt, askedAt, handoff } of calls) {
    // An agent that has taken over is still at work: see `settleHandoff`.
    if (result === undefined || handoff === true) continue
    if (startedAt !== undefined) closeInside(scope, startedAt, `the call of ${toolName} has ended.`)
    for (const path of [startedAt, approvalAt, askedAt]) if (path !== undefined) await closeStep(scope, path)
  }
}

async function closeStep(scope: Scope, path: string): Promise<void> {
  const open = scope.state.open.steps.get(path)
  if (open === undefined) return
  await inStep(scope, open.step, { ...open, kind: kindOf(open) }, async () => ({ value: undefined }))
}

/** Closes what an agent has left open below the path of its call, if it was at work. The step of the call stays open. */
function closeInside(scope: Scope, path: string, why: string): void {
  const isWorking = [...scope.state.open.steps.keys()].some((at) => at !== path && isUnder(at, path))
  if (!isWorking) return
  closeUnder(scope, path, new MillraceError('interrupted', why), true)
}

export async function settleCall(scope: Scope, loop: CallingLoop, call: ModelToolCall): Promise<void> {
  const { toolCallId, toolName } = call
  const tool = loop.tools.get(toolName) ?? askedBefore(call)
  const nextPath = () => joinPath(loop.root, scope.state.loopAt(loop.root).children + 1)
  const inTool = (path: string, kind: CallKind, body: (path: string) => Promise<Result>, more?: Partial<NewStep>) => {
    // Checked synchronously when the call starts, because calls of one message arrive at once.
    if (!scope.state.has(path)) for (const limit of scope.limits) limit.checkStep()
    return inStep(scope, path, { stepType: kind, kind, toolCallId, toolName, ...more }, async () => {
      const { result, ...rest } = await body(path)
      scope.emit(path, { type: 'tool-result', toolCallId, toolName, result: result as Json, ...rest })
      return { value: undefined }
    })
  }

  const runAgent = async (offered: OfferedAgent, given: unknown, known?: string) => {
    const refused = known === undefined ? refusal(scope, offered) : undefined
    if (refused !== undefined) return inTool(nextPath(), 'tool-call', async () => fault(refused))
    const { use } = offered
    return inSlot(scope, (inner) => {
      const before = use.history === true ? loop.before() : undefined
      const run = (path: string) => runAgentTool(inner, path, { offered, given, before, answers: false })
      return inTool(known ?? nextPath(), 'tool-call', run, agentStep(offered))
    })
  }

  if (call.startedAt !== undefined && tool?.agent !== undefined && scope.state.calledPipelines.has(call.startedAt)) {
    // It goes on inside.
    const written = await parse(tool.implementation, call.edited ?? scope.inputOf(call))
    const given = written.ok ? written.value : {}
    if (call.handoff === true) await settleHandoff(scope, loop, call, { offered: tool.agent, given })
    else await runAgent(tool.agent, given, call.startedAt)
    return
  }
  const runInside = (runs: ToolRun, given: unknown) => {
    const { messages } = loop
    // The fold changes the call when its step starts.
    const resumed = call.startedAt !== undefined
    return inTool(call.startedAt ?? nextPath(), 'tool-call', (path) =>
      runs(scope, path, { given, toolCallId, messages, resumed }),
    )
  }
  if (call.startedAt !== undefined && tool?.runs !== undefined) {
    const written = await parse(tool.implementation, call.edited ?? scope.inputOf(call))
    if (written.ok) await runInside(tool.runs, written.value)
    else await inTool(call.startedAt, 'tool-call', async () => fault(written.error))
    return
  }
  if (call.startedAt !== undefined) {
    // Only a crash leaves a tool call started and without a result.
    const { startedAt } = call
    if (tool?.implementation?.idempotent !== true) {
      // A fork may go on with a pipeline that does not call this agent any more.
      closeInside(scope, startedAt, `the pipeline does not call the agent ${toolName} any more.`)
      if (call.result === undefined) await inTool(startedAt, 'tool-call', async () => withOutcome('unavailable'))
      else await closeStep(scope, startedAt)
      return
    }
    scope.emit(startedAt, { type: 'step-reset', attempt: scope.state.open.steps.get(startedAt)?.attempt ?? 1 })
    await inTool(startedAt, 'tool-call', (path) => execute(scope, path, loop, call, tool))
    return
  }
  // The open step of a call that was about to wait gets the outcome of the call that need not wait.
  const waiting = [call.approvalAt, call.askedAt].find((path) => path !== undefined && scope.state.open.steps.has(path))
  if (tool === undefined) {
    const offered = [...loop.tools].flatMap(([name, { deferred }]) => (deferred === true ? [] : [name]))
    const known = offered.join(', ') || 'none'
    await inTool(waiting ?? nextPath(), 'tool-call', async () =>
      fault(`There is no tool "${toolName}". Known tools: ${known}.`),
    )
    return
  }
  const { implementation, approval = false } = tool
  const isClients = tool.agent === undefined && tool.runs === undefined && implementation?.execute === undefined
  if (isClients && scope.cannotAsk === true) {
    await inTool(call.askedAt ?? nextPath(), 'client-tool', async () => withOutcome('unavailable', noClient))
    return
  }
  if (isClients && scope.handOver && !approval) {
    // Invalid arguments are handed over, too: the client has already received them and must check them itself.
    await inTool(call.askedAt ?? nextPath(), 'client-tool', async () => handedOver)
    return
  }
  const written = await parse(implementation, scope.inputOf(call))
  if (!written.ok) {
    await inTool(waiting ?? nextPath(), 'tool-call', async () => fault(written.error))
    return
  }
  let input = written.value
  if (approval) {
    if (!scope.canWait) {
      await inTool(call.approvalAt ?? nextPath(), 'approval', async () => withOutcome('denied', cannotWait))
      return
    }
    if (!(await approve(scope, call, call.approvalAt ?? nextPath(), { input, approval }))) return
    const edited = call.edited === undefined ? written : await parse(implementation, call.edited)
    if (!edited.ok) {
      await inTool(nextPath(), 'tool-call', async () => fault(edited.error))
      return
    }
    input = edited.value
  }
  // Before the step of the call: nothing is sent until somebody has signed in.
  const why = tool.server === undefined ? undefined : await whyNoToken(scope, loop.root, tool.server, toolCallId)
  if (why !== undefined) {
    await inTool(nextPath(), 'tool-call', async () => fault(why))
    return
  }
  if (tool.agent !== undefined) {
    if (tool.agent.use.handoff === true) await settleHandoff(scope, loop, call, { offered: tool.agent, given: input })
    else await runAgent(tool.agent, input)
    return
  }
  if (tool.runs !== undefined) {
    await runInside(tool.runs, input)
    return
  }
  if (!isClients) {
    await inTool(nextPath(), 'tool-call', (path) => execute(scope, path, loop, call, tool))
    return
  }
  const path = call.askedAt ?? nextPath()
  await inTool(path, 'client-tool', async () => {
    if (scope.handOver) return handedOver
    const { outcome, answer, reason } = await ask(scope, path, call, { kind: 'tool', input })
    if (outcome === 'closed' || answer?.kind !== 'tool') return withOutcome('unavailable', reason)
    return { result: answer.output, isError: answer.isError === true }
  })
}

/** Undefined: the call can be made. */
async function whyNoToken(scope: Scope, root: string, server: string, toolCallId: string): Promise<string | undefined> {
  try {
    return await signIn(scope, root, server, toolCallId)
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'mcp-unauthorized') return error.message
    throw error
  }
}

/**
 * A client tool that was already requested stays known even if the continuing request does not list it: an AG-UI client lists its tools with each
 * request, and may list none beside its reply.
 */
function askedBefore({ askedAt, request, toolName }: ModelToolCall): OfferedTool | undefined {
  if (askedAt === undefined || request?.kind !== 'tool') return undefined
  return { spec: { name: toolName, inputSchema: { type: 'object' }, client: true } }
}

/** Waits until a person has approved the call, and emits its outcome if not. */
async function approve(
  scope: Scope,
  call: ModelToolCall,
  path: string,
  { input, approval }: { input: unknown; approval: Approval },
): Promise<boolean> {
  // If the approval step has finished and the call has no result, the call was approved.
  if (scope.state.finished.has(path)) return true
  const { toolCallId, toolName } = call
  return inStep(scope, path, { ...asApproval, toolCallId, toolName }, async () => {
    const { outcome, answer, reason } = await ask(scope, path, call, {
      kind: 'approval',
      input,
      ...(typeof approval === 'object' && { roles: approval.roles }),
    })
    const yes = outcome === 'answered' && answer?.kind === 'approval' && answer.approved
    if (!yes) {
      const why = answer?.kind === 'approval' ? answer.reason : reason
      const denied = withOutcome(outcome === 'closed' ? 'unavailable' : 'denied', why)
      scope.emit(path, { type: 'tool-result', toolCallId, toolName, ...denied })
    }
    return { value: yes }
  })
}

async function parse(implementation: ToolImplementation | undefined, text: string): Promise<ParsedInput> {
  return implementation === undefined ? readArguments(text) : parseToolInput(implementation, text)
}

/** How the model is told of a call that a crash has taken along. */
export function unavailable(): Result {
  return withOutcome('unavailable')
}

/** A failure for the model. Details are for the log alone. */
export function toFault(scope: Scope, path: string, toolName: string, error: unknown): Result {
  // The model and clients see the message. Details for the log go into a part that is not sent to clients.
  if (error instanceof MillraceError) {
    const { message, detail } = error
    if (detail !== undefined) {
      const text = `The tool ${toolName} failed: ${wholeMessage(error)}`
      scope.emit(path, { type: 'warning', code: 'tool-failed', message: text })
    }
    return fault(message)
  }
  return fault(error instanceof Error ? error.message : wholeMessage(error))
}

type ToolResult = Extract<Part, { type: 'tool-result' }>
/** A tool's return value. It becomes JSON when its part becomes an entry. */
type Json = ToolResult['result']
type Result = Pick<ToolResult, 'isError' | 'outcome'> & { result: unknown }

const handedOver: Result = { ...withOutcome('handed-over'), isError: false }

function fault(message: string): Result {
  return { result: message, isError: true }
}

function withOutcome(outcome: ToolOutcome, reason?: string): Result & { result: string } {
  const text = outcomeText[outcome]
  return { result: reason === undefined ? text : `${text} Reason: ${reason}.`, isError: true, outcome }
}

type Asked = Pick<ToolRequest, 'kind' | 'input' | 'roles'>

async function ask(scope: Scope, path: string, call: ModelToolCall, asked: Asked) {
  const { kind } = asked
  // A client tool with approval has two requests: the newest one may be the approval.
  const known = call.request?.kind === kind ? call.request : undefined
  if (known !== undefined && call.response !== undefined) return call.response
  const { toolCallId, toolName } = call
  const requestId = known?.requestId ?? `${scope.runId}.${scope.newId()}`
  const deadline = known?.deadline ?? scope.now() + scope.requestDeadline
  return scope.request(path, { requestId, toolCallId, toolName, ...asked, deadline }, scope.signal)
}

async function execute(
  scope: Scope,
  path: string,
  loop: CallingLoop,
  call: ModelToolCall,
  { implementation, use }: OfferedTool,
): Promise<Result> {
  const input = await parseToolInput(implementation!, call.edited ?? scope.inputOf(call))
  if (!input.ok) return fault(input.error)
  // The start must be stored before the tool can have any effect.
  await scope.stored()
  scope.signal.throwIfAborted()
  const timeout = use?.timeout ?? implementation!.timeout ?? defaultTimeout
  const stop = new AbortController()
  const expired = new MillraceError('timed-out', `The tool ${call.toolName} did not answer within ${timeout} ms.`)
  const timer = setTimeout(() => stop.abort(expired), timeout)
  const signal = anySignal([scope.signal, stop.signal])
  const { toolCallId } = call
  const { runId, threadId } = scope
  const earlier = (words: string, limit: number) => searchEarlier(scope, words, limit)
  try {
    const traceparent = traceparentOf(scope, path)
    const about = { toolCallId, runId, threadId, messages: loop.messages(), searchEarlier: earlier }
    const context = { signal, ...about, ...omitUndefined({ traceparent, user: scope.state.start?.user }) }
    const result = await Promise.race([
      Promise.resolve(implementation!.execute!(input.value, context)),
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
    ])
    return { result, isError: false }
  } catch (error) {
    if (scope.signal.aborted) throw error
    return toFault(scope, path, call.toolName, error)
  } finally {
    clearTimeout(timer)
    // Releases resources that the tool still holds on this signal.
    stop.abort(expired)
  }
}

function readArguments(text: string): ParsedInput {
  try {
    return { ok: true, value: text.trim() === '' ? {} : parseJson(text) }
  } catch (error) {
    return { ok: false, error: `The arguments are not valid JSON: ${messageOf(error)}` }
  }
}
