/** Whether what a model said is the JSON that was asked for: by the agent's file (`output`) or by the request. */
import { messageOf, MillraceError } from '../part/error.ts'
import { textOf } from '../part/fold.ts'
import { readJson } from '../part/read-json.ts'
import type { CallSettings } from '../part/settings.ts'
import { badOutput } from '../part/turn-messages.ts'
import type { Turn } from '../part/turns.ts'
import { checkValue, firstFaults } from '../pipeline/check-input.ts'
import type { LlmConfig } from '../pipeline/llm-config.ts'
import type { ValueSchema } from '../pipeline/value-schema.ts'
import { tooMuchWork, validate } from './json-schema/validate.ts'

/** How often a model is told what is wrong with its JSON, where the agent does not say. */
const defaultRetries = 1

export interface Verdict {
  error: MillraceError
  /** Whether the model may try again. */
  again: boolean
}

export interface ObjectJudge {
  /** What is wrong with a model call that has said everything; undefined when nothing is, or when it called tools of ours. */
  judge(turn: Turn): Verdict | undefined
  /** A try that is not the last may be followed by another, so that no text can be shown before it is judged. */
  retries: number
}

type Asked = Pick<LlmConfig, 'output'> & Pick<CallSettings, 'responseFormat'>

/** Undefined when no JSON is asked for. */
export function createObjectJudge({ output, responseFormat }: Asked): ObjectJudge | undefined {
  if (output === undefined && responseFormat === undefined) return undefined
  return {
    retries: output?.retries ?? defaultRetries,
    judge(turn) {
      if (hasOwnCalls(turn)) return undefined
      const reason = turn.finish?.reason.unified
      const isCut = reason === 'length' || reason === 'content-filter'
      // A client knows this end from its protocol, and what was cut off does not get longer by asking again.
      if (isCut && output === undefined) return undefined
      try {
        readObject(textOf({ role: 'assistant', content: turn.content }), output?.schema, responseFormat)
        return undefined
      } catch (error) {
        return { error: error as MillraceError, again: !isCut }
      }
    },
  }
}

/** Calls that are not the provider's to run. */
export function hasOwnCalls({ calls }: Turn): boolean {
  return calls.some(({ providerExecuted }) => !providerExecuted)
}

/** The answer's JSON, checked. Throws `bad-output`. */
export function readObject(
  text: string,
  schema: ValueSchema | undefined,
  format?: CallSettings['responseFormat'],
): unknown {
  let json: unknown
  try {
    json = readJson(text)
  } catch (error) {
    throw misfit(messageOf(error))
  }
  if (schema === undefined) {
    const faults = format?.schema === undefined ? objectFaults(json) : schemaFaults(format.schema, json)
    if (faults.length > 0) throw misfit(`${firstFaults(faults)}.`)
    return json
  }
  const { value, faults } = checkValue(schema, json, 'output')
  if (faults.length > 0) throw misfit(`${firstFaults(faults)}.`)
  return value
}

export function misfit(why: string): MillraceError {
  return new MillraceError(badOutput, `The answer does not fit its shape: ${why}`)
}

/** An answer that takes too long to check is not held against the model. */
function schemaFaults(schema: unknown, json: unknown): string[] {
  return validate(schema, json).filter((fault) => fault !== tooMuchWork)
}

/** `json_object` means an object. */
function objectFaults(json: unknown): string[] {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? [] : ['output must be an object']
}
