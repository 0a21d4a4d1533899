/**
 * The scripted model of `millrace/testing` for our own tests: `finish()` is never added automatically, because many tests are about
 * incomplete answers, and `toolCall` takes the id first.
 *
 *     const gate = latch()
 *     const model = createScriptedModel([[text('Hel', 'lo'), gate, finish()], [throws(new Error('busy'))]])
 */
import {
  toolCall as callOf,
  type ScriptStep,
  createScriptedModel as createModel,
  type ScriptedModel,
} from '../scripted.ts'

export { drop, errorPart, finish, latch, reasoning, text, throws, type Latch, type ScriptStep } from '../scripted.ts'
export type { ScriptedModel } from '../scripted.ts'

/** `deaf`: ignores its signal, like providers that wrap their own client. */
export function createScriptedModel(script: ScriptStep[][], { deaf = false } = {}): ScriptedModel {
  return createModel(script, { deaf, autoFinish: false })
}

export function toolCall(id: string, toolName: string, input: unknown = {}): ScriptStep[] {
  return callOf(toolName, input, id)
}
