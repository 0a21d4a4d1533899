/**
 * A tool loop as a fold: the output of each model call under a step, and the outcomes of its tool calls.
 *
 * `llm` decides its next action from this alone, so continuing after a client's answer, after a crash and after a tool is the
 * same code. The messages of a conversation are derived from it as well.
 */
import type { Entry, EntryOf } from '../part/entry.ts'
import type { ErrorValue } from '../part/error.ts'
import type { AssistantContent, ProviderOptions } from '../part/message.ts'
import type { FinishReason, ProviderMetadata } from '../part/model-part.ts'
import { parseJson } from '../part/json.ts'
import { parentPath } from '../part/path.ts'
import { kindOf } from '../part/step-kind.ts'
import { badOutput, note, toResultContent } from './turn-messages.ts'
import { toUsage, type Usage } from '../part/usage.ts'

/** One tool call of a turn and its progress. */
export interface Call {
  toolCallId: string
  /** The provider's own id of the call, if it differs. */
  providerCallId?: string
  toolName: string
  /** JSON text, as the model wrote it. */
  input: string
  providerExecuted: boolean
  /** Path of the `tool-call` step, once the server has started to run the tool. */
  startedAt?: string
  /** Path of the step in which a client was asked for the result, or for approval. */
  askedAt?: string
  request?: EntryOf<'request'>
  response?: EntryOf<'response'>
  result?: EntryOf<'tool-result'>
}

/** One model call. `finish` is absent while it runs and if it was interrupted. */
export interface Turn {
  path: string
  content: AssistantContent[]
  calls: Call[]
  finish?: { reason: FinishReason; usage?: Usage; providerMetadata?: ProviderMetadata }
  /** The model of its prompt, or the fallback that was called instead. */
  model?: string
  /** Its usage, once reported. */
  usage?: Usage
  /** Its step has finished or was aborted: no more parts follow. */
  closed: boolean
  /** Why its step failed. */
  error?: ErrorValue
  /** What was wrong with its JSON; the next call tells the model. */
  rejected?: string
}

export interface Turns {
  readonly root: string
  readonly list: Turn[]
  /** The first prompt, with which the loop started. */
  readonly base: EntryOf<'prompt'> | undefined
  /** Number of the last child step of the root; the next one gets this plus one. A reset child's number is reused. */
  readonly children: number
  apply(entry: Entry): void
}

type Block = { type: 'text' | 'reasoning'; text: string; providerOptions?: ProviderOptions }

export function createTurns(root: string): Turns {
  const list: Turn[] = []
  const blocks = new Map<string, Block>()
  const turns = { root, list, base: undefined as EntryOf<'prompt'> | undefined, children: 0, apply }

  const turnAt = (path: string) => list.findLast((turn) => turn.path === path)
  // A message may hold thousands of calls, so that none is searched for. Of calls with one id the newest turn's counts, and
  // of one turn's the first.
  const callsById = new Map<string, { call: Call; turn: Turn }>()
  const callsByRequest = new Map<string, Call>()
  const callOf = (id: string) => callsById.get(id)?.call
  const index = (turn: Turn, call: Call) => {
    if (callsById.get(call.toolCallId)?.turn !== turn) callsById.set(call.toolCallId, { call, turn })
  }

  function reindex(): void {
    callsById.clear()
    callsByRequest.clear()
    for (const turn of list) {
      for (const call of turn.calls) {
        index(turn, call)
        if (call.request) callsByRequest.set(call.request.requestId, call)
      }
    }
  }

  function apply(entry: Entry): void {
    const { step } = entry
    switch (entry.type) {
      case 'text-delta':
      case 'reasoning-delta': {
        const block = blocks.get(entry.id)
        if (block) {
          block.text += entry.delta
          note(block, entry.providerMetadata)
        }
        break
      }
      case 'text-start':
      case 'reasoning-start': {
        const block: Block = { type: entry.type === 'text-start' ? 'text' : 'reasoning', text: '' }
        note(block, entry.providerMetadata)
        blocks.set(entry.id, block)
        // A stream that a step returned is an answer without a model call: the step itself is the only turn.
        if (step === root && turnAt(root) === undefined) list.push(newTurn(root))
        turnAt(step)?.content.push(block)
        break
      }
      case 'text-end':
      case 'reasoning-end':
        note(blocks.get(entry.id), entry.providerMetadata)
        blocks.delete(entry.id)
        break
      case 'step-start':
        if (parentPath(step) !== root) break
        // A second attempt has the same number.
        turns.children = Math.max(turns.children, numberOf(step))
        if (kindOf(entry) === 'model-call') list.push(newTurn(step))
        else if (entry.toolCallId !== undefined) {
          const call = callOf(entry.toolCallId)
          if (call) call[kindOf(entry) === 'tool-call' ? 'startedAt' : 'askedAt'] = step
        }
        break
      case 'step-finish': {
        const turn = turnAt(step)
        if (!turn) break
        turn.closed = true
        if (entry.error) turn.error = entry.error
        break
      }
      case 'step-reset': {
        const at = list.findIndex((turn) => turn.path === step)
        if (at >= 0) {
          list.splice(at, 1)
          if (step !== root) turns.children = numberOf(step) - 1
        }
        for (const { calls, content } of list) {
          for (const call of calls) {
            if (call.startedAt === step) delete call.startedAt
            // Results of provider-executed calls stay valid, whichever turn they arrived with.
            if (call.result?.step === step) content.push(toResultContent(call.result))
          }
        }
        if (step === root) list.length = 0
        reindex()
        if (step === root || turns.base?.step === step) turns.base = undefined
        break
      }
      case 'prompt': {
        turns.base ??= entry
        const turn = turnAt(step)
        if (turn) turn.model = entry.model
        break
      }
      case 'retry': {
        const turn = turnAt(step)
        if (turn && entry.model !== undefined) turn.model = entry.model
        if (turn && entry.error.code === badOutput) turn.rejected = entry.error.message
        break
      }
      case 'usage': {
        const turn = turnAt(step)
        if (turn) turn.usage = entry.usage
        break
      }
      case 'tool-call': {
        const turn = turnAt(step)
        if (!turn) break
        const { toolCallId, toolName, input, providerExecuted = false, providerMetadata, providerCallId } = entry
        const call: Call = { toolCallId, toolName, input, providerExecuted }
        if (providerCallId !== undefined) call.providerCallId = providerCallId
        turn.calls.push(call)
        index(turn, call)
        const content: AssistantContent = { type: 'tool-call', toolCallId, toolName, input: parseInput(input) }
        if (providerExecuted) content.providerExecuted = true
        note(content, providerMetadata)
        turn.content.push(content)
        break
      }
      case 'tool-result': {
        const call = callOf(entry.toolCallId)
        if (entry.preliminary === true || !call) break
        call.result = entry
        if (call.providerExecuted) turnAt(step)?.content.push(toResultContent(entry))
        break
      }
      case 'request': {
        const call = entry.toolCallId === undefined ? undefined : callOf(entry.toolCallId)
        if (!call) break
        if (call.request) callsByRequest.delete(call.request.requestId)
        call.request = entry
        callsByRequest.set(entry.requestId, call)
        break
      }
      case 'response': {
        const call = callsByRequest.get(entry.requestId)
        if (call) call.response = entry
        break
      }
      case 'file': {
        const { mediaType, data, providerMetadata } = entry
        const content: AssistantContent = { type: 'file', mediaType, data: typeof data === 'string' ? data : data.url }
        note(content, providerMetadata)
        turnAt(step)?.content.push(content)
        break
      }
      case 'custom': {
        const content: AssistantContent = { type: 'custom', kind: entry.kind as `${string}.${string}` }
        note(content, entry.providerMetadata)
        turnAt(step)?.content.push(content)
        break
      }
      case 'finish': {
        const turn = turnAt(step)
        if (!turn) break
        turn.finish = { reason: entry.finishReason }
        const usage = toUsage(entry.usage)
        if (usage) turn.finish.usage = usage
        if (entry.providerMetadata) turn.finish.providerMetadata = entry.providerMetadata
        break
      }
      default:
    }
  }

  return turns
}

/** `main/answer/3` → 3. */
function numberOf(path: string): number {
  return Number(path.slice(path.lastIndexOf('/') + 1))
}

function newTurn(path: string): Turn {
  return { path, content: [], calls: [], closed: false }
}

/** Parses a model's arguments. Returns the text itself if it is not JSON, and an empty object if it is blank. */
export function parseInput(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return parseJson(text)
  } catch {
    return text
  }
}
