/** The context of a caller: the server's, with a runtime that shows only what the caller may see. */
import { decide, visibleTo, type Action } from '../../access/decide.ts'
import { notAllowed } from '../../access/scope-store.ts'
import { scopeRuntime } from '../../access/scope-runtime.ts'
import { toErrorValue } from '../../part/error.ts'
import type { RunRow } from '../../part/log.ts'
import type { Principal } from '../../part/principal.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { HandlerContext, RequestContext } from '../handler-context.ts'
import type { Editing } from '../http/editing.ts'
import { recordAudit } from '../routes/audit.ts'
import type { Access } from './access.ts'
import { keyNumberOf } from './key-number.ts'

/** Maximum number of callers whose contexts are kept. */
const mostKept = 1000

export interface Callers {
  /** The same for the same principal, for a while: what is kept per runtime stays. */
  runtimeOf(principal: Principal): Runtime
}

export function createCallers(base: Runtime, access: Access, onError: (error: unknown) => void): Callers {
  const kept = new Map<string, Runtime>()
  const onExpired = (principal: Principal, end: Parameters<Runtime['onLost']>[1]) =>
    access.onExpired(principal, (error) => end(toErrorValue(error)))
  /** A route tells of what it does by name, with the address of the request. */
  function noteTurn(principal: Principal, action: Action, { id, tenant }: RunRow): void {
    recordAudit({ store: base.store, onError }, { principal, action, resource: id, outcome: 'done', tenant })
  }

  return {
    runtimeOf(principal) {
      const name = JSON.stringify([principal, keyNumberOf(principal)])
      const known = kept.get(name)
      if (known !== undefined) return known
      const runtime = scopeRuntime(base, principal, {
        onExpired,
        onDone: (action, run, isTurn) => isTurn && noteTurn(principal, action, run),
      })
      if (kept.size >= mostKept) kept.delete(kept.keys().next().value!)
      kept.set(name, runtime)
      return runtime
    },
  }
}

/** Who asks, through which runtime, and from where. */
export interface Asking {
  principal: Principal
  runtime: Runtime
  address: string
  admission: RequestContext['admission']
}

export function contextOf(
  server: HandlerContext,
  access: Access,
  { principal, runtime, address, admission }: Asking,
): RequestContext {
  const { store } = server.runtime
  return {
    ...server,
    runtime,
    principal,
    admission,
    filter: visibleTo(principal),
    editing: editingOf(server.editing, principal),
    onExpired: (end) => access.onExpired(principal, end),
    audit: (action, resource, outcome, tenant) =>
      recordAudit({ store, onError: server.onError }, { principal, action, resource, outcome, address, tenant }),
    server,
  }
}

export function editingOf(editing: Editing, principal: Principal): Editing {
  if (decide(principal, 'agents.edit') === 'allow') return editing
  return {
    state: false,
    check() {
      throw notAllowed('agents.edit')
    },
  }
}
