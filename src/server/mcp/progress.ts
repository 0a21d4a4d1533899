/** Progress notifications of one call: at most four a second, and none of the text is lost. */
import type { Clock } from './clock.ts'

export interface ProgressParams {
  /** Counts up. */
  progress: number
  /** The newest words. */
  message?: string
  _meta?: { 'millrace/delta': string }
}

const intervalMs = 250
const longestMessage = 120

export interface Progress {
  /** Adds text of the answer, or says what the run does now. */
  add(delta: string, words: string): void
  /** The next notification, if one is due. */
  take(): ProgressParams | undefined
  /** Calls `onDue` once when {@link take} will have one. Replaces an earlier call. */
  whenDue(onDue: () => void): void
  close(): void
}

export function createProgress(clock: Clock): Progress {
  let count = 0
  let delta = ''
  let said = ''
  let words = ''
  let shown = ''
  /** The next one may come then. */
  let due = Number.NEGATIVE_INFINITY
  /** The last one had no text: text need not wait for it, and what comes behind waits the longer. */
  let mayPass = false
  let cancel: (() => void) | undefined

  const isNew = () => delta !== '' || words !== shown
  const dueAt = () => (mayPass && delta !== '' ? Number.NEGATIVE_INFINITY : due)

  return {
    add(text, now) {
      delta += text
      // Not from the middle of a character on.
      said = (said + text).slice(-longestMessage).replace(/^[\uDC00-\uDFFF]/u, '')
      words = now
    },
    take() {
      const now = clock.now()
      if (!isNew() || now < dueAt()) return undefined
      const isText = delta !== ''
      due = Math.max(now, due) + intervalMs
      mayPass = !isText
      count++
      const params: ProgressParams = { progress: count, message: isText ? said : words }
      if (isText) params._meta = { 'millrace/delta': delta }
      delta = ''
      shown = words
      return params
    },
    whenDue(onDue) {
      cancel?.()
      cancel = isNew() ? clock.after(Math.max(0, dueAt() - clock.now()), onDue) : undefined
    },
    close: () => cancel?.(),
  }
}
