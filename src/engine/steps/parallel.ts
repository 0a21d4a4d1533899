/**
 * `parallel`: runs branches concurrently, each with its own copy of the variables. Their parts are interleaved in the log. If a
 * branch fails, the others are stopped at once (`onError: fail`), or its error becomes its value (`continue`).
 */
import { anySignal } from '../../async/any-signal.ts'
import { MillraceError, toPublicError, wholeMessage, type ErrorValue } from '../../part/error.ts'
import { joinPath } from '../../part/path.ts'
import type { ParallelConfig } from '../../pipeline/pipeline.ts'
import { inContainer, type Inside, type StepOutcome } from '../container.ts'
import { closeUnder, Suspended, toError, asRecorded, within, type Scope } from '../scope.ts'
import { afterGrace } from '../../async/with-grace.ts'

export function runParallel(
  scope: Scope,
  path: string,
  config: ParallelConfig,
  { place }: Inside,
): Promise<StepOutcome> {
  const { branches, onError, order } = config
  const names = branches.map(({ name }) => name)
  return inContainer(
    scope,
    path,
    { stepType: 'parallel', kind: 'parallel', ...(order === 'declared' ? { order: names } : undefined) },
    async () => {
      const known = onError === 'fail' ? failedBefore(scope, path, names) : undefined
      if (known !== undefined) {
        closeOthers(scope, path, names, known.name)
        throw asRecorded(known.error)
      }
      const stop = new AbortController()
      const signal = anySignal([scope.signal, stop.signal])
      const results = new Map<string, StepOutcome>()
      let failed: { name: string; error: unknown } | undefined
      let over = false
      // Drop parts from branches that ignore their signal and continue after the step has ended.
      const emit: Scope['emit'] = (step, part) => {
        if (!over) scope.emit(step, part)
      }
      const run = async (name: string, steps: ParallelConfig['branches'][number]['steps']) => {
        const inner = within(scope, { variables: new Map(scope.variables), signal, emit })
        const at = joinPath(path, name)
        try {
          const outcome = await inContainer(inner, at, { stepType: 'branch', kind: 'container' }, () =>
            scope.runSteps(inner, steps, at, place),
          )
          results.set(name, outcome)
        } catch (error) {
          if (error instanceof Suspended || signal.aborted) throw error
          if (onError === 'continue') results.set(name, { value: { error: toPublicError(toError(error)) } })
          else {
            failed ??= { name, error }
            stop.abort(becauseOf(failed.name))
          }
        }
      }
      const tasks = branches.map((branch) => () => run(branch.name, branch.steps))
      const stopped = Promise.withResolvers<void>()
      const release = afterGrace(signal, stopped.resolve)
      try {
        await scope.fork(tasks, stopped.promise)
      } catch (error) {
        if (failed === undefined) throw error
      } finally {
        over = true
        release()
      }
      if (failed !== undefined) {
        if (!scope.signal.aborted) {
          const { message } = becauseOf(failed.name)
          const detail = wholeMessage(toError(failed.error))
          await scope.notifyAbort(path, new MillraceError('aborted', message, { detail }))
          closeOthers(scope, path, names, failed.name)
        }
        throw failed.error
      }
      signal.throwIfAborted()
      const outcomes = names.map((name) => [name, results.get(name)!] as const)
      const answer = outcomes.find(([, outcome]) => outcome.answer !== undefined)?.[1].answer
      const value = Object.fromEntries(outcomes.map(([name, outcome]) => [name, outcome.value]))
      return { value, ...(answer === undefined ? undefined : { answer }) }
    },
  )
}

/** The error of the branches that were stopped. The cause is reported only at the branch that failed. */
function becauseOf(name: string): MillraceError {
  return asRecorded({ code: 'aborted', message: `Stopped because the branch "${name}" failed.` })
}

function closeOthers(scope: Scope, path: string, names: string[], failed: string): void {
  for (const name of names) if (name !== failed) closeUnder(scope, joinPath(path, name), becauseOf(failed))
}

interface FailedBranch {
  name: string
  error: ErrorValue
}

/** The branch that failed before a crash, if any. The other branches are not restarted. */
function failedBefore({ state }: Scope, path: string, names: string[]): FailedBranch | undefined {
  if (state.finished.has(path)) return undefined
  const ends = names.flatMap((name) => {
    const { error, seq } = state.finished.get(joinPath(path, name)) ?? {}
    return error === undefined ? [] : [{ name, error, seq: seq! }]
  })
  // The first failure is the cause; it stopped the others.
  return ends.toSorted((a, b) => a.seq - b.seq)[0]
}
