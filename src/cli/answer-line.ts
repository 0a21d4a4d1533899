/** Open requests as text: as little of an id as names one, and the command line that answers it. */
import type { EntryOf } from '../part/entry.ts'

/** A request's id without the run's. */
export function shortRequestId(run: string, { requestId }: EntryOf<'request'>): string {
  return requestId.startsWith(`${run}.`) ? requestId.slice(run.length + 1) : requestId
}

/** A command to paste. `isOneOfMany`: the request is named too. */
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
