/** The table of routes. A route cannot be mounted without the action that it takes, and its handler gets the context of the caller. */
import type { HonoRequest } from 'hono/request'
import type { App } from './router.ts'
import { actions, decide, type Action } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
import { MillraceError } from '../../part/error.ts'
import type { RequestContext } from '../handler-context.ts'

/** Answers a request with the caller's context: its runtime shows only what the caller may see. */
export type Respond<Path extends string> = (
  context: RequestContext,
  request: HonoRequest<Path>,
) => Response | Promise<Response>

type Add = <Path extends string>(path: Path, action: Action, respond: Respond<Path>) => void

export interface Route {
  method: string
  path: string
  action: Action
}

export interface Routes {
  get: Add
  post: Add
  delete: Add
  /** All that were added. */
  readonly declared: readonly Route[]
}

/** Actions whose every success is in the audit. */
const audited: ReadonlySet<Action> = new Set([
  'agents.edit',
  'tests.edit',
  'runs.answer',
  'runs.delete',
  'runs.import',
  'runs.stop',
  'keys',
  'upkeep',
])

async function withAudit<Path extends string>(
  context: RequestContext,
  action: Action,
  request: HonoRequest<Path>,
  respond: Respond<Path>,
): Promise<Response> {
  const tenant = await tenantOf(context, action, request)
  try {
    const response = await respond(context, request)
    // A list of keys changes nothing, and neither does the check of a text.
    if (response.ok && request.method !== 'GET') context.audit(action, resourceOf(request), 'done', tenant)
    return response
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'forbidden') {
      context.audit(action, resourceOf(request), 'refused', tenant)
    }
    throw error
  }
}

/** Of the run in the path, before it is deleted. An admin of all tenants has none of its own. */
async function tenantOf(
  { principal, server }: RequestContext,
  action: Action,
  request: HonoRequest,
): Promise<string | undefined> {
  const id = request.param('id')
  if (principal.tenant !== undefined || id === undefined || !action.startsWith('runs.')) return undefined
  const { runs } = server.runtime.store
  const row = request.path.startsWith('/api/threads/')
    ? (await runs.list({ threadId: id, limit: 1 }))[0]
    : await runs.get(id)
  return row?.tenant
}

/** The ids in the path. */
function resourceOf(request: HonoRequest): string {
  return Object.values(request.param()).join('/')
}

export function createRoutes(app: App): Routes {
  const declared: Route[] = []

  function adder(method: 'get' | 'post' | 'delete'): Add {
    return (path, action, respond) => {
      if (!actions.includes(action)) throw new Error(`Route ${path} has no action.`)
      declared.push({ method: method.toUpperCase(), path, action })
      app[method](path, (c) => {
        const { context } = c.env
        const request = c.req as unknown as HonoRequest<typeof path>
        if (decide(context.principal, action) === 'allow') {
          return audited.has(action) ? withAudit(context, action, request, respond) : respond(context, request)
        }
        context.audit(action, resourceOf(request), 'refused')
        throw notAllowed(action)
      })
    }
  }

  return { get: adder('get'), post: adder('post'), delete: adder('delete'), declared }
}
