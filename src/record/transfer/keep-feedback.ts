/** What people said of a run where it was recorded. It is input from outside: nobody here is taken to have said it. */
import type { FeedbackLine } from '../../part/feedback.ts'
import type { Store } from '../../part/log.ts'
import type { ImportUser } from './recording-place.ts'

/** Before the id of somebody who said it elsewhere. */
const elsewhere = 'imported:'

interface KeepOptions {
  /** Whom the run belongs to here. Undefined: a copy of one's own data, which comes back as it was. */
  user: ImportUser
  clean: ((text: string) => string) | undefined
}

/** Of a run that is new here. */
export async function keepFeedback(
  { feedback }: Pick<Store, 'feedback'>,
  run: string,
  lines: readonly FeedbackLine[],
  { user, clean = (text) => text }: KeepOptions,
): Promise<void> {
  if (feedback === undefined) return
  for (const { note, ...line } of lines) {
    const named = user === undefined ? line : { ...line, user: withMark(line), tenant: user?.tenant ?? '' }
    await feedback.put({ ...named, run, ...(note !== undefined && { note: clean(note) }) })
  }
}

/** People of several tenants must not become one. */
function withMark({ user, tenant }: FeedbackLine): string {
  return `${elsewhere}${tenant === '' ? '' : `${tenant}/`}${user}`.slice(0, 512)
}
