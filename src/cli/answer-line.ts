/** The short id of an open request, and the command that answers it. */
import type { EntryOf } from '../part/entry.ts'
import type { InputRequest } from '../part/request-part.ts'

/** The request id without the prefix of the run id. */
export function shortRequestId(run: string, { requestId }: EntryOf<'request'>): string {
  return requestId.startsWith(`${run}.`) ? requestId.slice(run.length + 1) : requestId
}

/** What a step asks for, in its own words. */
export function questionOf({ message, reason }: Pick<InputRequest, 'message' | 'reason'>): string {
  return message ?? reason ?? 'a value'
}

/** A command to paste. `isOneOfMany`: adds `--request`. */
export function answerLine(
  run: string,
  request: EntryOf<'request'>,
  { where, isOneOfMany }: { where: string; isOneOfMany: boolean },
): string {
  const answer = request.kind === 'approval' ? 'approve' : `'<JSON or text>'`
  const which = isOneOfMany ? ` --request ${shortRequestId(run, request)}` : ''
  return `millrace answer ${run} ${answer}${which}${where}`
}

export function answerLines(run: string, requests: readonly EntryOf<'request'>[], where: string): string[] {
  return requests.map((request) => `  ${answerLine(run, request, { where, isOneOfMany: requests.length > 1 })}`)
}
