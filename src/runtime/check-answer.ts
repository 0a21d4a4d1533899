/** Refuses an answer that is not of the kind, or not the value, that a request asks for. */
import { MillraceError } from '../part/error.ts'
import type { Answer, RequestPart } from '../part/request-part.ts'
import { firstFaults } from '../pipeline/check-input.ts'
import { tooMuchWork, validate } from '../pipeline/json-schema/validate.ts'
import { wrongAnswer } from './runtime-errors.ts'

export function checkAnswer(request: RequestPart, answer: Answer): void {
  if (request.kind !== answer.kind) throw wrongAnswer(request)
  if (request.kind !== 'input' || request.schema === undefined || !('value' in answer)) return
  // A value that takes too long to check is accepted.
  const faults = validate(request.schema, answer.value).filter((fault) => fault !== tooMuchWork)
  if (faults.length === 0) return
  throw new MillraceError('bad-input', `The value does not fit: ${firstFaults(faults)}.`, { status: 400 })
}
