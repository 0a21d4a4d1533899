/** `millrace/part`: what can happen in a run, the order it happens in, and what a log comes to. Browser-safe. */
export type * from './part/part.ts'
export { mergeDeltas, toRecorded, type Entry, type EntryOf, type RecordedPart } from './part/entry.ts'
export { MillraceError, toErrorValue, type ErrorValue } from './part/error.ts'
export { createRunFold, textOf, type RunFold, type RunView, type StepView, type Summary } from './part/fold.ts'
export { createGrammar, type Grammar } from './part/grammar.ts'
export type * from './part/message.ts'
export type { Appended, InboxMessage, Log, RunIndex, RunQuery, RunRow, RunStatus, Store } from './part/log.ts'
export { addUsage, type Usage } from './part/usage.ts'
