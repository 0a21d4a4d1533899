/** What a request says about a run that was recorded elsewhere: `agentId`, or `trust` from whoever may edit agents. */
import { compact } from '../../part/compact.ts'
import type { Consent } from '../../runtime/runtime.ts'
import type { HandlerContext } from '../handler-context.ts'
import { optionalText } from '../http/body.ts'
import { bad } from '../http/query.ts'

/** Throws `forbidden` for who trusts a recording and may not edit agents: its text is one like any other. */
export function consentIn(context: HandlerContext, request: Request, body: Record<string, unknown>): Consent {
  const { trust } = body
  if (trust !== undefined && typeof trust !== 'boolean') throw bad('trust', 'true or false')
  if (trust === true) context.editing.check(request)
  return compact({ agent: optionalText(body, 'agentId'), trust }) as Consent
}
