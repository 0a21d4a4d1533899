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
