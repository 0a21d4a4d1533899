/**
 * `context.request`: a handler asks a person or a client for a value. A run that waits unwinds, so when the answer is there the
 * handler is called again from its start. Its n-th request is the n-th of the log: one that has ended returns at once.
 */
import { compact } from '../../part/compact.ts'
import type { EntryOf } from '../../part/entry.ts'
import type { ExecutionContext, Question, QuestionAnswer } from '../registry.ts'
import { Suspended, type Scope } from '../scope.ts'

interface Questions {
  request: ExecutionContext['request']
  /** Resolves as the handler does. Rejects with `Suspended` as soon as one of its requests does, whatever the handler makes of that. */
  unlessSuspended(handler: unknown): Promise<unknown>
}

export function createQuestions(scope: Scope, path: string): Questions {
  const suspended = Promise.withResolvers<never>()
  suspended.promise.catch(() => undefined)
  let count = 0
  // One at a time: a step is one branch of the run, which waits or does not.
  let last: Promise<unknown> = Promise.resolve()

  async function ask(n: number, { timeout, ...question }: Question): Promise<QuestionAnswer> {
    const known = scope.state.asked.get(path)?.[n]
    if (known?.response !== undefined) return toAnswer(known.response)
    if (scope.handOver) return { outcome: 'closed', reason: 'This run cannot wait for an answer.' }
    const requestId = known?.request.requestId ?? `${scope.runId}.${scope.newId()}`
    const deadline = known?.request.deadline ?? scope.now() + (timeout ?? scope.requestDeadline)
    try {
      const request = compact({ requestId, kind: 'input' as const, ...question, deadline })
      return toAnswer(await scope.request(path, request, scope.signal))
    } catch (error) {
      if (error instanceof Suspended) suspended.reject(error)
      throw error
    }
  }

  return {
    request(question = {}) {
      const n = count++
      const answer = last.then(() => ask(n, question))
      last = answer.catch(() => undefined)
      return answer
    },
    unlessSuspended: (handler) => Promise.race([handler, suspended.promise]),
  }
}

function toAnswer({ answer, reason = 'closed' }: EntryOf<'response'>): QuestionAnswer {
  if (answer?.kind !== 'input') return { outcome: 'closed', reason }
  return 'value' in answer ? { outcome: 'answered', value: answer.value } : { outcome: 'cancelled' }
}
