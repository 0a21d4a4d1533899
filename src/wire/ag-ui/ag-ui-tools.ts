/**
 * Tool calls of the answer: TOOL_CALL_START, ARGS and END, always all three, and TOOL_CALL_RESULT for what the client does not know. A
 * call ends when its `tool-call` is in the log, because an input also ends when it is cut off.
 */
import { LateMap } from '../../fold/late-map.ts'
import { callKey } from '../../fold/open-items.ts'
import type { EntryOf } from '../../part/entry.ts'
import type { ProviderMetadata } from '../../part/model-part.ts'
import { isUnder, parentPath } from '../../part/path.ts'
import type { Sink } from '../wire.ts'
import type { AgUiEvent, AgUiEventOf, AgUiOut } from './ag-ui-event.ts'
import { toEncryptedValue } from './encrypted-value.ts'
import type { AgUiCallNames } from './ag-ui-call-names.ts'
import type { AgUiIds } from './ag-ui-ids.ts'
import { toResultContent } from './ag-ui-result.ts'

type Content = AgUiEventOf<'TOOL_CALL_RESULT'>['content']

export interface AgUiTools {
  prompt(entry: EntryOf<'prompt'>): void
  inputStart(entry: EntryOf<'tool-input-start'>): void
  inputDelta(entry: EntryOf<'tool-input-delta'>): void
  call(entry: EntryOf<'tool-call'>): void
  result(entry: EntryOf<'tool-result'>): void
  /**
   * Sends the call first if the client does not know it, because it can only answer a call that it knows. Returns the id by which the
   * client knows it.
   */
  request(entry: EntryOf<'request'> & { kind: 'tool' | 'approval' }): string
  response(entry: EntryOf<'response'>): void
  /** The calls that the client has to answer, in their order. */
  pending(): string[]
  /** Ends calls at and under this path whose arguments were cut off, because its step has finished. Default: all. */
  close(path?: string): void
  /** Forgets the calls of an attempt that a crash superseded. */
  forget(path: string): void
}

interface Input {
  path: string
  /** Its id as the client knows it, here and below. */
  toolCallId: string
  hasArgs: boolean
  metadata: ProviderMetadata | undefined
  sendDelta(text: string, timestamp: number): void
}
interface Call {
  path: string
  toolCallId: string
  /** Its place among all calls. */
  n: number
  /** The open request for its result. */
  asked?: string
  /** A client tool that needs approval: the client sees the call once it is approved, because it may run what it sees. */
  hidden?: { toolName: string; args: string; metadata: ProviderMetadata | undefined }
  /** The open request for its approval. */
  approval?: string
  /** The client has given the result, so it knows it. */
  isAnswered?: true
}

export function createAgUiTools(
  sink: Sink<AgUiEvent>,
  out: AgUiOut,
  { ids, names, old, showsAnswers }: { ids: AgUiIds; names: AgUiCallNames; old: boolean; showsAnswers: boolean },
): AgUiTools {
  const inputs = new LateMap<string, Input>()
  const calls = new LateMap<string, Call>()
  const handedOver: Call[] = []
  /** Client tools that need approval, by tool loop. */
  const gated = new LateMap<string, ReadonlySet<string>>()
  const isGated = (path: string, toolName: string) => gated.get(parentPath(path))?.has(toolName) === true
  let count = 0

  function start(path: string, toolCallId: string, toolCallName: string): void {
    out.send({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId: ids.calls(path) })
  }

  function end(toolCallId: string, args: string | undefined): void {
    if (args !== undefined) out.send({ type: 'TOOL_CALL_ARGS', toolCallId, delta: args.trim() === '' ? '{}' : args })
    out.send({ type: 'TOOL_CALL_END', toolCallId })
  }

  function sendResult(toolCallId: string, content: Content, metadata: Record<string, unknown> | undefined): void {
    const messageId = ids.result(toolCallId)
    out.send({ type: 'TOOL_CALL_RESULT', messageId, toolCallId, content, role: 'tool', metadata })
  }

  function keep(key: string, path: string, toolCallId: string): Call {
    const call: Call = { path, toolCallId, n: ++count }
    calls.set(key, call)
    return call
  }

  function sign(toolCallId: string, metadata: ProviderMetadata | undefined): void {
    if (metadata === undefined) return
    const encryptedValue = toEncryptedValue(metadata)
    out.send({ type: 'REASONING_ENCRYPTED_VALUE', subtype: 'tool-call', entityId: toolCallId, encryptedValue })
  }

  return {
    prompt({ step, tools = [] }) {
      const asking = tools.flatMap(({ name, approval }) => (approval ? [name] : []))
      if (asking.length > 0) gated.set(parentPath(step), new Set(asking))
    },
    inputStart({ step: path, id, toolName, providerMetadata: metadata }) {
      if (isGated(path, toolName)) return
      const toolCallId = names.next(id)
      const sendDelta = sink.prepare((delta, timestamp) => ({ type: 'TOOL_CALL_ARGS', timestamp, toolCallId, delta }))
      inputs.set(callKey(path, id), { path, toolCallId, hasArgs: false, metadata, sendDelta })
      start(path, toolCallId, toolName)
    },
    inputDelta({ step, id, delta }) {
      const input = inputs.get(callKey(step, id))
      if (input === undefined || delta === '') return
      if (!input.hasArgs && /\S/u.test(delta)) input.hasArgs = true
      input.sendDelta(delta, out.timestamp)
    },
    call({ step, toolCallId: id, toolName, input: text, providerMetadata }) {
      const key = callKey(step, id)
      const input = inputs.get(key)
      inputs.delete(key)
      const call = keep(key, step, input?.toolCallId ?? names.next(id))
      if (isGated(step, toolName)) {
        call.hidden = { toolName, args: text, metadata: providerMetadata }
        return
      }
      if (input === undefined) start(step, call.toolCallId, toolName)
      end(call.toolCallId, input?.hasArgs === true ? undefined : text)
      sign(call.toolCallId, providerMetadata ?? input?.metadata)
    },
    result({ step, toolCallId, result, isError, outcome, preliminary }) {
      const key = callKey(step, toolCallId)
      const call = calls.get(key)
      if (call === undefined || preliminary === true) return
      calls.delete(key)
      // It was denied or closed: the client never heard of it.
      if (call.hidden !== undefined) return
      if (outcome === 'handed-over') return void handedOver.push(call)
      if (call.isAnswered === true && !showsAnswers) return
      const metadata = isError === true ? { isError, ...(outcome && { outcome }) } : undefined
      sendResult(call.toolCallId, toResultContent(result, old), metadata)
      if (step === call.path) ids.end(step)
    },
    request({ kind, step, requestId, toolCallId: id, toolName, input }) {
      const key = callKey(step, id)
      const known = calls.get(key)
      const call = known ?? keep(key, step, names.next(id))
      const args = JSON.stringify(input) ?? ''
      if (known === undefined && kind === 'approval' && isGated(step, toolName)) {
        call.hidden = { toolName, args, metadata: undefined }
      } else if (known === undefined) {
        start(step, call.toolCallId, toolName)
        end(call.toolCallId, args)
      }
      call[kind === 'tool' ? 'asked' : 'approval'] = requestId
      return call.toolCallId
    },
    response({ requestId, outcome, answer }) {
      for (const call of calls.values()) {
        if (
          call.approval === requestId &&
          call.hidden !== undefined &&
          answer?.kind === 'approval' &&
          answer.approved
        ) {
          const { path, toolCallId, hidden } = call
          delete call.hidden
          start(path, toolCallId, hidden.toolName)
          end(toolCallId, answer.input === undefined ? hidden.args : JSON.stringify(answer.input))
          sign(toolCallId, hidden.metadata)
        }
        if (call.asked !== requestId) continue
        delete call.asked
        if (outcome === 'answered') call.isAnswered = true
      }
    },
    pending() {
      const asked = [...calls.values()].filter((call) => call.asked !== undefined)
      return [...handedOver, ...asked].sort((a, b) => a.n - b.n).map(({ toolCallId }) => toolCallId)
    },
    close(root = '') {
      for (const [key, { path, toolCallId, hasArgs }] of inputs) {
        if (!isUnder(path, root)) continue
        inputs.delete(key)
        end(toolCallId, hasArgs ? undefined : '')
        const content = 'The arguments of this tool call were cut off.'
        sendResult(toolCallId, content, { isError: true, outcome: 'aborted' })
      }
    },
    forget(path) {
      for (const map of [inputs, calls]) for (const [key, each] of map) if (isUnder(each.path, path)) map.delete(key)
    },
  }
}
