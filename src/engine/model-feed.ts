/**
 * Turns a provider's parts into parts that obey the grammar, whatever the provider sends: makes block ids unique, closes open
 * blocks and drops duplicates. One feed per attempt.
 */
import { MillraceError } from '../part/error.ts'
import type { Message } from '../part/message.ts'
import { callKey } from '../fold/open-items.ts'
import type { ModelPart } from '../part/part.ts'
import { parentPath } from '../part/path.ts'
import { toUsage, type Usage } from '../part/usage.ts'
import type { Speaking } from './limits.ts'
import { answerTooLong } from '../models/outside/read-limits.ts'
import type { Scope } from './scope.ts'

export interface FeedOptions {
  /** The name from the YAML file, to look up the price. */
  model: string
  messages: readonly Message[]
  /** Name of the callback for every piece of content. */
  onChunk?: string
  /** Called with each piece of the answer's text. */
  onText?: (delta: string) => void
  /** Set to restart with every piece of content. */
  silence?: { restart: boolean }
}

export function createFeed(scope: Scope, path: string, { onChunk, onText, messages, model, silence }: FeedOptions) {
  const { open, callIds } = scope.state
  const root = parentPath(path)
  const { limits, answerChars } = scope
  let length = 0
  const pricing = scope.registry.pricing?.get(model)
  const speaking: Speaking = {
    inputCharacters: limits.some(({ watches }) => watches) ? JSON.stringify(messages).length : 0,
    outputCharacters: 0,
    price: pricing && { input: pricing.input / 1e6, output: pricing.output / 1e6 },
  }
  scope.speaking.set(path, speaking)
  const ids = new Map<string, string>()
  const inputs = new Map<string, string>()
  const feed = { hasContent: false, usage: undefined as Usage | undefined, error: undefined as unknown, part }

  /** A provider's own parts before the first content. They are dropped if the call fails there and is retried. */
  const held: Extract<ModelPart, { type: 'custom' }>[] = []

  function start(type: 'text' | 'reasoning', providerId: string): string {
    const id = scope.newId()
    ids.set(`${type}:${providerId}`, id)
    return id
  }

  function part(said: ModelPart): void {
    const part = callIds.toLog(root, said)
    length += 'delta' in part ? part.delta.length : lengthOf(part, inputs)
    if (length > answerChars) throw answerTooLong(answerChars)
    switch (part.type) {
      case 'stream-start':
      case 'response-metadata':
      case 'raw':
        scope.emit(path, part)
        return
      case 'error':
        feed.error ??= part.error ?? new MillraceError('model-failed', 'The model reported an error without details.')
        return
      case 'finish':
        release()
        closeBlocks()
        feed.usage = toUsage(part.usage)
        scope.emit(path, part)
        return
      default:
    }
    if (silence !== undefined) silence.restart = true
    if (part.type === 'custom' && !feed.hasContent) {
      held.push(part)
      return
    }
    feed.hasContent = true
    release()
    if (onChunk !== undefined) void scope.invoke(onChunk, { chunk: part })
    say(part)
    if (!('delta' in part)) return
    if (part.type === 'text-delta') onText?.(part.delta)
    speaking.outputCharacters += part.delta.length
    for (const limit of limits) if (limit.watches) limit.check()
  }

  function release(): void {
    for (const part of held.splice(0)) scope.emit(path, part)
  }

  function say(part: Exclude<ModelPart, { type: 'stream-start' | 'response-metadata' | 'raw' | 'error' | 'finish' }>) {
    switch (part.type) {
      case 'text-delta':
      case 'reasoning-delta': {
        const kind = part.type === 'text-delta' ? 'text' : 'reasoning'
        let id = ids.get(`${kind}:${part.id}`)
        if (id === undefined) {
          id = start(kind, part.id)
          scope.emit(path, { type: `${kind}-start`, id })
        }
        scope.emit(path, { ...part, id })
        return
      }
      case 'text-start':
        scope.emit(path, { ...part, id: start('text', part.id) })
        return
      case 'reasoning-start':
        scope.emit(path, { ...part, id: start('reasoning', part.id) })
        return
      case 'text-end':
      case 'reasoning-end': {
        const key = `${part.type === 'text-end' ? 'text' : 'reasoning'}:${part.id}`
        const id = ids.get(key)
        ids.delete(key)
        if (id !== undefined) scope.emit(path, { ...part, id })
        return
      }
      case 'tool-input-start':
        if (open.inputs.has(callKey(path, part.id))) return
        inputs.set(part.id, part.toolName)
        scope.emit(path, part)
        return
      case 'tool-input-delta':
      case 'tool-input-end':
        if (open.inputs.has(callKey(path, part.id))) scope.emit(path, part)
        return
      case 'tool-call':
        if (open.inputs.has(callKey(path, part.toolCallId))) {
          scope.emit(path, { type: 'tool-input-end', id: part.toolCallId })
        }
        if (!open.calls.has(callKey(path, part.toolCallId))) scope.emit(path, part)
        return
      case 'tool-result':
        if (open.calls.has(callKey(path, part.toolCallId))) scope.emit(path, part)
        return
      default:
        scope.emit(path, part)
    }
  }

  function closeBlocks(): void {
    for (const [id, at] of open.texts) if (at === path) scope.emit(path, { type: 'text-end', id })
    for (const [id, at] of open.reasonings) if (at === path) scope.emit(path, { type: 'reasoning-end', id })
    for (const { step, id } of open.inputs.values()) if (step === path) scope.emit(path, { type: 'tool-input-end', id })
  }

  return feed
}

/** What a part without a delta adds to the answer's length: its strings, including arguments and files. */
function lengthOf(part: ModelPart, inputs: ReadonlyMap<string, string>): number {
  // Its deltas are already counted.
  if (part.type === 'tool-call' && inputs.has(part.toolCallId)) return 1
  const { type: _, ...fields } = part
  return Object.values(fields).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 1)
}
