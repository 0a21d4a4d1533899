/** Whether a provider is told to cache a prompt: only where another call with the same beginning is likely, because to write a cache costs more. */
import { equal } from '../part/equal.ts'
import { threadOf } from '../part/log.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { plainThread } from '../part/principal.ts'
import type { PromptCache } from '../models/prompt-cache.ts'
import type { ToolLoopConfig } from '../pipeline/pipeline.ts'
import type { Scope } from './scope.ts'

/** `messages`: those that the loop begins with. */
export function promptCacheOf(
  scope: Scope,
  config: Pick<ToolLoopConfig, 'cache' | 'maxSteps'>,
  tools: readonly ToolSpec[],
  messages: readonly Message[],
): PromptCache | undefined {
  const setting = config.cache ?? scope.registry.models.cache ?? 'auto'
  if (setting === 'none') return undefined
  const calls = tools.length > 0 && config.maxSteps > 1
  if (!calls && !isConversation(scope, messages)) return undefined
  return { setting, conversation: JSON.stringify([scope.state.start?.agent, scope.threadId]) }
}

/** Whether the next message of a conversation makes a call that begins with these messages. */
function isConversation({ input, runId, threadId, depth }: Scope, messages: readonly Message[]): boolean {
  const given = input['messages']
  // A step with messages of its own makes others each time.
  if (!Array.isArray(given) || !equal(messages[0], given[0])) return false
  if (messages.some(({ role }) => role === 'assistant')) return true
  return depth === 0 && plainThread(threadId) !== threadOf(runId)
}
