/**
 * Asks the person who has started a run to sign in to an MCP server. The question is a step of its own, before that of the call: while it is open
 * nothing was sent, so a run that waits for it, or that another process takes over, repeats no call.
 */
import type { EntryOf } from '../part/entry.ts'
import { connectPath, signInReason } from '../part/sign-in-request.ts'
import { joinPath, parentPath } from '../part/path.ts'
import { SignInNeeded } from '../tools/mcp/auth/sign-in-needed.ts'
import { inStep, type Scope } from './scope.ts'

const stepType = 'sign-in'
/** ms. */
const patience = 600_000
/** How often somebody is asked who says that it is done, and it is not. */
const mostAsked = 2

interface AskedBefore {
  path: string
  request: EntryOf<'request'>
  response?: EntryOf<'response'>
}

/**
 * Resolves when there are tokens, or with why there are none: declined, or too late. `root`: the step that needs the server. `toolCallId`: the call
 * that does. Rejects with `mcp-unauthorized` if tokens cannot be renewed.
 */
export async function signIn(
  scope: Scope,
  root: string,
  server: string,
  toolCallId?: string,
): Promise<string | undefined> {
  const { mcp, state } = scope
  if (mcp?.ready === undefined || mcp.people?.names.includes(server) !== true) return undefined
  const asked = () => askedBefore(scope, root, server, toolCallId)
  const ask = (path: string, request: EntryOf<'request'> | undefined) =>
    inStep(scope, path, { stepType, kind: 'task' }, async () => {
      const requestId = request?.requestId ?? `${scope.runId}.${scope.newId()}`
      const metadata = { server, url: connectPath(requestId), ...(toolCallId !== undefined && { toolCallId }) }
      const message = `The MCP server "${server}" asks you to sign in.`
      const deadline = request?.deadline ?? scope.now() + patience
      await scope.request(
        path,
        { requestId, kind: 'input', reason: signInReason, message, metadata, deadline },
        scope.signal,
      )
      return { value: undefined }
    })

  for (;;) {
    const last = asked().at(-1)
    if (last !== undefined && last.response === undefined) {
      await ask(last.path, last.request)
      continue
    }
    if (last !== undefined && state.open.steps.has(last.path)) {
      // The run has waited for this answer.
      await inStep(scope, last.path, { stepType, kind: 'task' }, async () => ({ value: undefined }))
    }
    if (await isReady(mcp.ready(server))) return undefined
    const why = last?.response && refusal(last.response)
    if (why !== undefined) return `${whoOf(server)} was not called: ${why}.`
    if (asked().length >= mostAsked) return `${whoOf(server)} was not called: nobody has signed in to it.`
    if (scope.handOver || !scope.canWait) {
      return `${whoOf(server)} was not called: somebody must sign in to it first, and this run cannot wait for that.`
    }
    await ask(joinPath(root, nextName(scope, root, asked().length)), undefined)
  }
}

/** Whether a step has only asked so far. */
export function isSigningIn({ state }: Scope, root: string): boolean {
  return [...state.open.steps].some(([path, step]) => step.stepType === stepType && parentPath(path) === root)
}

/** A tool loop counts its children; those of an `mcp-tool` step with numbers are the answers of its server. */
function nextName({ state }: Scope, root: string, asked: number): string | number {
  const kind = state.open.steps.get(root)?.kind
  if (kind !== 'task') return state.loopAt(root).children + 1
  return asked === 0 ? stepType : `${stepType}.${asked + 1}`
}

const whoOf = (server: string) => `The MCP server "${server}"`

async function isReady(ready: Promise<void>): Promise<boolean> {
  try {
    await ready
    return true
  } catch (error) {
    if (error instanceof SignInNeeded) return false
    throw error
  }
}

function askedBefore({ state }: Scope, root: string, server: string, toolCallId: string | undefined): AskedBefore[] {
  return [...state.asked].flatMap(([path, values]) => {
    if (parentPath(path) !== root) return []
    return values.flatMap(({ request, response }) => {
      if (request.kind !== 'input' || request.reason !== signInReason) return []
      const { metadata = {} } = request
      if (metadata['server'] !== server || metadata['toolCallId'] !== toolCallId) return []
      return [{ path, request, ...(response && { response }) }]
    })
  })
}

function refusal({ outcome, answer, reason }: EntryOf<'response'>): string | undefined {
  if (outcome === 'closed') return `nobody has signed in to it (${reason ?? 'closed'})`
  return answer?.kind === 'input' && 'cancelled' in answer ? 'the sign-in was declined' : undefined
}
