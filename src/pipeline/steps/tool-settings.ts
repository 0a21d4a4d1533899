/** What every kind of tool may set: the approval of its calls and their time. */
import { z } from 'zod'
import { roles } from '../../part/principal.ts'
import type { Approval } from '../../part/request-part.ts'
import { child } from '../check.ts'
import { itemsOf, textOf } from '../reader.ts'
import { duration, flag, list, map, oneOf } from '../scalars.ts'
import type { Node } from '../tree.ts'

const approvalWords = `must be true, false or {roles: [${roles.join(', ')}]}`
export const approval = z
  .union(
    [
      flag,
      map({
        roles: list(oneOf([...roles]))
          .min(1, 'is empty; name a role, or write approval: true')
          .describe('Only callers with one of these roles may approve, and admins. Others see that the run waits.'),
      }),
    ],
    approvalWords,
  )
  .optional()
  .describe(
    'true: every call needs the approval of a person, before the tool runs or the client is asked to run it. { roles: [operator] }: of somebody with this role.',
  )
export const defer = flag
  .optional()
  .describe(
    'true: the model finds the tool with find_tools before it can call it. false: it always sees it. Default: as the config of its MCP server says, and how many tools there are.',
  )
export const timeout = duration(1).optional().describe('Time limit of a call. Default: the limit of the tool, or 60s.')
/** The schema has checked it. */
export function approvalIn(node: Node | undefined): { approval?: Approval } {
  if (node?.kind === 'scalar') return node.text === 'true' ? { approval: true } : {}
  const named = itemsOf(child(node, 'roles')).map(textOf)
  return named.length === 0 ? {} : { approval: { roles: roles.filter((role) => named.includes(role)) } }
}
