import type { Actor } from '../../src/part/principal.ts'
import type { Reply } from '../../src/part/request-part.ts'

/** What became of a request, and by whom: `Allowed by Olga.` */
export function answerWords(answer: Reply | undefined, by: Actor | undefined): string {
  const who = by === undefined ? '' : ` by ${by.name ?? by.id}`
  if (answer === undefined) return `Closed without an answer.`
  if (answer.kind === 'approval') {
    if (!answer.approved) return `Denied${who}.`
    return answer.input === undefined ? `Allowed${who}.` : `Allowed with other arguments${who}.`
  }
  if (!('cancelled' in answer)) return `Answered${who}.`
  return answer.declined === true ? `Declined${who}.` : `Not answered${who}.`
}
