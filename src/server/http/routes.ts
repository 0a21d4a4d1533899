/** The table of routes. A route cannot be mounted without the action that it takes, and its handler gets the context of the caller. */
import type { HonoRequest } from 'hono/request'
import type { App } from './router.ts'
import { actions, decide, type Action } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
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

export function createRoutes(app: App): Routes {
  const declared: Route[] = []

  function adder(method: 'get' | 'post' | 'delete'): Add {
    return (path, action, respond) => {
      if (!actions.includes(action)) throw new Error(`Route ${path} has no action.`)
      declared.push({ method: method.toUpperCase(), path, action })
      app[method](path, (c) => {
        const { context } = c.env
        if (decide(context.principal, action) !== 'allow') throw notAllowed(action)
        return respond(context, c.req as unknown as HonoRequest<typeof path>)
      })
    }
  }

  return { get: adder('get'), post: adder('post'), delete: adder('delete'), declared }
}
