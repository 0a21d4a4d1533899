/** Checks a model's answer against the JSON format that the agent file (`output`) or the request requires. */
import { messageOf, MillraceError } from '../part/error.ts'
import { textOf } from '../fold/run-view.ts'
import { readJson } from '../part/json.ts'
import type { CallSettings } from '../part/part.ts'
import { badOutput, type ModelReply } from '../fold/reply-messages.ts'
import { checkValue, firstFaults } from '../pipeline/check-input.ts'
import type { LlmConfig } from '../pipeline/pipeline.ts'
import type { ValueSchema } from '../pipeline/value-schema.ts'
import { tooMuchWork, validate } from '../pipeline/json-schema/validate.ts'

/** How often a model may correct its JSON if the agent does not set `output.retries`. */
const defaultRetries = 1

export interface Verdict {
  error: MillraceError
  /** Whether the model may try again. */
  again: boolean
}

export interface ObjectJudge {
  /** Judges a complete model call. Undefined if its answer is valid, or if it called our tools. */
  judge(reply: ModelReply): Verdict | undefined
  /** Remaining retries of the model. Unless it is 0, no text can be shown before it is judged. */
  retries: number
}

type JsonRequest = Pick<LlmConfig, 'output'> & Pick<CallSettings, 'responseFormat'>

/** Undefined if no JSON is required. */
export function createObjectJudge({ output, responseFormat }: JsonRequest): ObjectJudge | undefined {
  if (output === undefined && responseFormat === undefined) return undefined
  return {
    retries: output?.retries ?? defaultRetries,
    judge(reply) {
      if (hasOwnCalls(reply)) return undefined
      const reason = reply.finish?.reason.unified
      const isCut = reason === 'length' || reason === 'content-filter'
      // The protocol reports to the client that the answer was cut off, and a retry would be cut off again.
      if (isCut && output === undefined) return undefined
      try {
        readObject(textOf({ role: 'assistant', content: reply.content }), output?.schema, responseFormat)
        return undefined
      } catch (error) {
        return { error: error as MillraceError, again: !isCut }
      }
    },
  }
}

/** Whether the reply has calls that the provider does not run itself. */
export function hasOwnCalls({ calls }: ModelReply): boolean {
  return calls.some(({ providerExecuted }) => !providerExecuted)
}

/** Parses and checks the answer's JSON. Throws `bad-output`. */
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
  return new MillraceError(badOutput, `The answer is not the requested JSON: ${why}`)
}

/** An answer that takes too long to check is accepted. */
function schemaFaults(schema: unknown, json: unknown): string[] {
  return validate(schema, json).filter((fault) => fault !== tooMuchWork)
}

/** `json_object` means an object. */
function objectFaults(json: unknown): string[] {
  return typeof json === 'object' && json !== null && !Array.isArray(json) ? [] : ['output must be an object']
}
