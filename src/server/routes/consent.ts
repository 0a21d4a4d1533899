/** A request's consent for a run that was recorded elsewhere: `agentId`, or `trust` from a caller who may edit agents. */
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Consent } from '../../runtime/runtime.ts'
import type { HandlerContext } from '../handler-context.ts'
import { optionalText } from '../http/body.ts'
import { bad } from '../http/query.ts'

/** Throws `forbidden` if a caller who may not edit agents trusts a recording: its text is like an edited agent. */
export function consentIn(context: HandlerContext, request: Request, body: Record<string, unknown>): Consent {
  const { trust } = body
  if (trust !== undefined && typeof trust !== 'boolean') throw bad('trust', 'true or false')
  if (trust === true) context.editing.check(request)
  return omitUndefined({ agent: optionalText(body, 'agentId'), trust }) as Consent
}
