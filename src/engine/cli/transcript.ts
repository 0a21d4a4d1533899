/**
 * The parts of a CLI agent as steps of the run: each of its model calls is a step, as those of an `llm` step are, and each sub-agent
 * is a step of the tool call that started it, so that it never enters the answer. The shared normaliser makes the parts legal.
 */
import type { ModelPart } from '../../part/model-part.ts'
import { joinPath } from '../../part/path.ts'
import type { SourcePart } from '../../part/part.ts'
import { createNormaliser, isContent, type Normaliser } from '../../fold/normalise.ts'
import { endProviderCalls } from '../model-call.ts'
import type { Scope } from '../scope.ts'

export interface Transcript {
  /** Returns the model call that has said it; undefined if a sub-agent did, or no model call. */
  part(part: SourcePart): string | undefined
  /** Closes what is open. */
  end(): void
}

/** The agent itself, or one of its sub-agents. */
interface Speaker {
  /** The step whose children its model calls are. */
  root: string
  call: ModelCall | undefined
  /** Of its last child step. */
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
  /** Sub-agents that are at work, by the id of the tool call that started them. */
  const subs = new Map<string, Speaker>()
  /** Who has begun a block or an input, or made a call. */
  const blocks = new Map<string, Speaker>()
  const callers = new Map<string, { speaker: Speaker; toolName: string }>()

  function part(given: SourcePart): string | undefined {
    // Not by a model call: those are told apart by what they say, and a report may come late.
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
   * The model call that says this. After a tool's result, whatever is new comes from the next one. Where no ids tell model calls apart, so do
   * words after a tool call: the tool may be still at work, and its result comes while a later model call is made.
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
    // The id under which the log has the call.
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

/** Parts with which a model call says something. */
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

/** The tool call that has started the sub-agent which says this. */
function parentCallOf(part: SourcePart): string | undefined {
  if (!('providerMetadata' in part)) return undefined
  const parent = (part.providerMetadata?.['claude'] ?? part.providerMetadata?.['qwen'])?.['parentToolUseId']
  return typeof parent === 'string' && parent !== '' ? parent : undefined
}
