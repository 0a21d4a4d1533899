/** Reports and health of `serve`. */
import type { MillraceError } from '../part/error.ts'
import type { ErrorGuard } from './error-guard.ts'
import type { Project } from '../project/project.ts'
import type { Report, Reporter } from './report.ts'
import type { ServeOptions } from './serve.ts'
import { storeReason } from './store-reason.ts'

/** Redacts secrets in every report. */
export function createReporter(
  { report, log }: Pick<ServeOptions, 'report' | 'log'>,
  project: () => Project | undefined,
): Reporter {
  const write: Reporter = report ?? ((each) => each.event === 'note' && log?.(each.message))
  return (each) => write(project()?.runtime.redact(each) ?? each)
}

export function reportOfStore(failure: MillraceError | undefined): Report {
  if (failure === undefined) return { level: 'info', event: 'store', message: 'Runs are stored again.' }
  const detail = failure.detail === undefined ? undefined : { detail: failure.detail }
  return { level: 'error', event: 'store', message: `${storeReason(failure)} New runs are refused.`, ...detail }
}

export function healthOf({ storeFailure }: Project, guard: ErrorGuard | undefined) {
  const reasons = storeFailure === undefined ? [] : [storeReason(storeFailure)]
  return { reasons, uncaughtErrors: guard?.unattributed ?? 0 }
}
