/** What people say of answers: up or down, and why. It stands beside the log, which is closed by its `run-end`. */

export type Verdict = 'up' | 'down'

export const verdicts: readonly Verdict[] = ['up', 'down']

/** What one person says of one run: the last that it said. */
export interface NewFeedback {
  run: string
  /** The id of who says it; empty: nobody in particular. */
  user: string
  /** Its tenant; empty: none. */
  tenant: string
  /** Absent: a note alone. */
  verdict?: Verdict
  /** At most 4,000 characters; longer ones are cut. Absent: none. */
  note?: string
  /** Epoch ms. */
  time: number
}

export interface FeedbackRow extends NewFeedback {
  /** Grows with each row. */
  n: number
}

/** Which rows to list, the newest first. Conditions are combined with AND. */
export interface FeedbackQuery {
  verdict?: Verdict | undefined
  /** Only rows listed after this `n`: the next page. */
  before?: number | undefined
  /** 1–1000, default 100. */
  limit?: number | undefined
}

/** Deleted with its run. Every method rejects with `store-failed` when the store fails. */
export interface Feedback {
  /** Replaces what this person said of this run. Resolves with whether there is such a run. */
  put(row: NewFeedback): Promise<boolean>
  /** Resolves with whether there was any. */
  remove(row: Pick<NewFeedback, 'run' | 'user' | 'tenant'>): Promise<boolean>
  /** Of one run, the oldest first. */
  of(run: string): Promise<FeedbackRow[]>
  list(query?: FeedbackQuery): Promise<FeedbackRow[]>
}

/** Maximum length of a note. */
export const longestNote = 4000

/** The row as it is stored. */
export function toFeedback({ run, user, tenant, verdict, note = '', time }: NewFeedback): NewFeedback {
  const text = note.trim().slice(0, longestNote).toWellFormed()
  return { run, user, tenant, ...(verdict && { verdict }), ...(text !== '' && { note: text }), time }
}

/** A row in a file with a run: a line of its own behind the log, `{"feedback": {…}}`. */
export type FeedbackLine = Omit<NewFeedback, 'run'>

/** Lines of one file at most. */
export const mostFeedbackLines = 1000
const longestName = 512

/** The lines for the rows of a run; empty if there are none. */
export function feedbackLines(rows: readonly NewFeedback[]): string {
  return rows
    .slice(0, mostFeedbackLines)
    .map(({ user, tenant, verdict, note, time }) => {
      const row: FeedbackLine = { user, tenant, ...(verdict && { verdict }), ...(note !== undefined && { note }), time }
      return `${JSON.stringify({ feedback: row })}\n`
    })
    .join('')
}

/** Whether a line of a file is feedback, not an entry. */
export function isFeedbackLine(value: unknown): value is { feedback: unknown } {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === 'feedback'
}

/** The row of such a line, or its fault. */
export function readFeedbackLine({ feedback }: { feedback: unknown }): FeedbackLine | string {
  if (typeof feedback !== 'object' || feedback === null) return 'feedback must be an object'
  const { user, tenant, verdict, note, time } = feedback as Record<string, unknown>
  const isName = (value: unknown) => typeof value === 'string' && value.length <= longestName && value.isWellFormed()
  if (!isName(user)) return `feedback.user must be a text of at most ${longestName} characters`
  if (!isName(tenant)) return `feedback.tenant must be a text of at most ${longestName} characters`
  if (typeof time !== 'number' || !(time >= 0 && time <= 8.64e15)) return 'feedback.time must be a time in epoch ms'
  const said = verdicts.find((each) => each === verdict)
  if (verdict !== undefined && said === undefined) return 'feedback.verdict must be "up" or "down"'
  if (note !== undefined && (typeof note !== 'string' || note.length > longestNote)) {
    return `feedback.note must be a text of at most ${longestNote} characters`
  }
  if (said === undefined && (note === undefined || note.trim() === '')) return 'feedback needs a verdict or a note'
  return {
    user: user as string,
    tenant: tenant as string,
    time: Math.round(time),
    ...(said && { verdict: said }),
    ...(typeof note === 'string' && { note }),
  }
}
