/**
 * The parts of a CLI agent as steps of the run: each of its model calls is a step, as in an `llm` step, and each sub-agent is a step of the tool
 * call that started it, so that its text never enters the answer. The shared normaliser makes the parts legal.
 */
import type { ModelPart } from '../../part/model-part.ts'
import { joinPath } from '../../part/path.ts'
import type { SourcePart } from '../../part/part.ts'
import { createNormaliser, isContent, type Normaliser } from '../../fold/normalise.ts'
import { endProviderCalls } from '../model-call.ts'
import type { Scope } from '../scope.ts'

export interface Transcript {
  /** Returns the model call of the part; undefined for a sub-agent's part, or one without a model call. */
  part(part: SourcePart): string | undefined
  /** Closes open items. */
  end(): void
}

/** The agent itself, or one of its sub-agents. */
interface Speaker {
  /** The step that is the parent of its model calls. */
  root: string
  call: ModelCall | undefined
  /** The number of its last child step. */
  number: number
}

interface ModelCall {
  path: string
  normaliser: Normaliser
  responseId: string | undefined
  hasContent: boolean
  /** Blocks and inputs that have not ended. */
  open: Set<string>
  /** Calls without a result. */
  pending: Set<string>
  hasResult: boolean
  hasText: boolean
  /** Whether it has called a tool. */
  hasCalled: boolean
}

/** `onCall`: a model call begins. */
export function createTranscript(scope: Scope, root: string, onCall: () => void): Transcript {
  const { emit, now, newId, state } = scope
  const main: Speaker = { root, call: undefined, number: state.loopAt(root).children }
  /** Running sub-agents, by the id of the tool call that started them. */
  const subs = new Map<string, Speaker>()
  /** The speaker of each block, input or call. */
  const blocks = new Map<string, Speaker>()
  const callers = new Map<string, { speaker: Speaker; toolName: string }>()

  function part(given: SourcePart): string | undefined {
    // Usage is not assigned to a model call: calls are distinguished by their content, and a report may come late.
    const speaker = given.type === 'usage' ? main : speakerOf(given)
    if (given.type === 'usage') emit(root, given)
    else say(speaker, given)
    return speaker === main ? speaker.call?.path : undefined
  }

  function say(speaker: Speaker, given: Exclude<SourcePart, { type: 'usage' }>): void {
    if (given.type === 'response-metadata') {
      const same = speaker.call !== undefined && (!speaker.call.hasContent || speaker.call.responseId === given.id)
      const call = same || (speaker.call?.open.size ?? 0) > 0 ? speaker.call! : begin(speaker)
      call.responseId = given.id ?? call.responseId
      emit(call.path, given)
      return
    }
    if (!isContent(given)) {
      if (given.type === 'finish') speaker.call?.normaliser.end()
      emit(speaker.call?.path ?? speaker.root, given)
      return
    }
    const call = callFor(speaker, given)
    note(call, speaker, given)
    call.normaliser.part(given)
    if (given.type === 'tool-result' && given.preliminary !== true) {
      const sub = subs.get(given.toolCallId)
      if (sub !== undefined) close(given.toolCallId, sub)
    }
  }

  /**
   * The model call of a part. After a tool's result, new content belongs to the next call. Without ids that distinguish model calls, so does text
   * after a tool call: the tool may still run, and its result comes during a later model call.
   */
  function callFor(speaker: Speaker, given: SourcePart): ModelCall {
    const { call } = speaker
    if (call === undefined) return begin(speaker)
    if (call.open.size > 0 || !starts.has(given.type)) return call
    const isAnswered = call.hasResult && call.pending.size === 0 && (call.hasCalled || call.hasText)
    const isLeft = call.responseId === undefined && call.hasCalled && words.has(given.type)
    return isAnswered || isLeft ? begin(speaker) : call
  }

  function note(call: ModelCall, speaker: Speaker, given: SourcePart): void {
    call.hasContent = true
    switch (given.type) {
      case 'text-start':
      case 'reasoning-start':
      case 'tool-input-start':
        call.open.add(given.id)
        blocks.set(given.id, speaker)
        if (given.type === 'text-start') call.hasText = true
        return
      case 'text-end':
      case 'reasoning-end':
      case 'tool-input-end':
        call.open.delete(given.id)
        blocks.delete(given.id)
        return
      case 'tool-call':
        call.pending.add(given.toolCallId)
        call.hasCalled = true
        callers.set(given.toolCallId, { speaker, toolName: given.toolName })
        return
      case 'tool-result':
        if (given.preliminary === true) return
        call.pending.delete(given.toolCallId)
        callers.delete(given.toolCallId)
        call.hasResult = true
        return
      default:
    }
  }

  function begin(speaker: Speaker): ModelCall {
    for (const limit of scope.limits) limit.checkStep()
    finish(speaker)
    onCall()
    const path = joinPath(speaker.root, ++speaker.number)
    emit(path, { type: 'step-start', stepType: 'model-call', kind: 'model-call', attempt: attemptAt(path) })
    const { open, callIds } = state
    const normaliser = createNormaliser({ path, emit, newId, open, callIds })
    const call: ModelCall = {
      path,
      normaliser,
      responseId: undefined,
      hasContent: false,
      open: new Set(),
      pending: new Set(),
      hasResult: false,
      hasText: false,
      hasCalled: false,
    }
    return (speaker.call = call)
  }

  function finish(speaker: Speaker): void {
    const { call } = speaker
    if (call === undefined) return
    speaker.call = undefined
    call.normaliser.end()
    closeStep(call.path)
  }

  function closeStep(path: string): void {
    const started = state.open.steps.get(path)?.timestamp
    if (started !== undefined) emit(path, { type: 'step-finish', duration: Math.max(0, now() - started) })
  }

  function close(toolCallId: string, sub: Speaker): void {
    finish(sub)
    endProviderCalls(scope, sub.root)
    closeStep(sub.root)
    subs.delete(toolCallId)
  }

  const attemptAt = (path: string) => (state.resets.get(path) ?? 0) + 1

  function speakerOf(given: SourcePart): Speaker {
    if ('id' in given && typeof given.id === 'string') {
      const known = blocks.get(given.id)
      if (known !== undefined) return known
    }
    const parent = parentCallOf(given)
    return parent === undefined ? main : (subs.get(parent) ?? beginSub(parent))
  }

  function beginSub(toolCallId: string): Speaker {
    const { speaker, toolName } = callers.get(toolCallId) ?? { speaker: main, toolName: 'agent' }
    const root = joinPath(speaker.root, ++speaker.number)
    // The call's id in the log.
    const named = state.callIds.toLog(speaker.root, { type: 'tool-input-end', id: toolCallId })
    const start = { stepType: 'sub-agent', kind: 'tool-call', toolCallId: named.id, toolName } as const
    emit(root, { type: 'step-start', attempt: attemptAt(root), ...start })
    const sub: Speaker = { root, call: undefined, number: 0 }
    subs.set(toolCallId, sub)
    return sub
  }

  return {
    part,
    end() {
      // The innermost first: a sub-agent may have sub-agents.
      for (const [id, sub] of [...subs].toReversed()) close(id, sub)
      finish(main)
      endProviderCalls(scope, root)
    },
  }
}

/** Parts that are content of a model call. */
const starts: ReadonlySet<SourcePart['type']> = new Set<ModelPart['type']>([
  'text-start',
  'text-delta',
  'reasoning-start',
  'reasoning-delta',
  'tool-input-start',
  'tool-call',
  'file',
  'source',
])

const words: ReadonlySet<SourcePart['type']> = new Set<ModelPart['type']>(['text-start', 'reasoning-start'])

/** The tool call that started the sub-agent of this part. */
function parentCallOf(part: SourcePart): string | undefined {
  if (!('providerMetadata' in part)) return undefined
  const parent = (part.providerMetadata?.['claude'] ?? part.providerMetadata?.['qwen'])?.['parentToolUseId']
  return typeof parent === 'string' && parent !== '' ? parent : undefined
}
