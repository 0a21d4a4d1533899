/**
 * The scripted model of `millrace/testing`, as our own tests use it: an answer ends only with `finish()`, because many of them are about
 * answers that do not, and a tool call names its id first.
 *
 *     const gate = latch()
 *     const model = createScriptedModel([[text('Hel', 'lo'), gate, finish()], [throws(new Error('busy'))]])
 */
import { toolCall as callOf, type ScriptStep } from '../models/script.ts'
import { createScriptedModel as createModel, type ScriptedModel } from '../models/scripted.ts'

export {
  drop,
  errorPart,
  finish,
  latch,
  reasoning,
  text,
  throws,
  type Latch,
  type ScriptStep,
} from '../models/script.ts'
export type { ScriptedModel } from '../models/scripted.ts'

/** `deaf`: does not notice its signal, as providers that wrap their own client. */
export function createScriptedModel(script: ScriptStep[][], { deaf = false } = {}): ScriptedModel {
  return createModel(script, { deaf, autoFinish: false })
}

export function toolCall(id: string, toolName: string, input: unknown = {}): ScriptStep[] {
  return callOf(toolName, input, id)
}
