/** `millrace/part`: the parts of a run, their order, and the values folded from a log. Browser-safe. */
export type * from './part/model-part.ts'
export type * from './part/part.ts'
export type * from './part/request-part.ts'
export { kindOf, type StepKind } from './part/step-kind.ts'
export { mergeDeltas, toRecorded, type Entry, type EntryOf, type RecordedPart } from './part/entry.ts'
export { MillraceError, toErrorValue, type ErrorValue } from './part/error.ts'
export { createRunFold, type RunFold } from './fold/run-fold.ts'
export { textOf, type RunView, type StepView, type Summary } from './fold/run-view.ts'
export type { Used, UsedByAgent, UsedByAll, UsedByModel, UsedByStep } from './fold/usage-fold.ts'
export { createGrammar, type Grammar } from './fold/grammar.ts'
export type * from './part/message.ts'
export type { ResponseHead } from './part/part.ts'
export type {
  Appended,
  Batch,
  Change,
  ChangesOptions,
  DueRun,
  Fleet,
  FleetProcess,
  InboxMessage,
  InboxOptions,
  Introduction,
  KeptView,
  Log,
  ReadOptions,
  RunIndex,
  RunQuery,
  RunRow,
  RunStatus,
  Store,
} from './part/log.ts'
export { addUsage, type Usage } from './part/usage.ts'
export type { ThreadQuery, ThreadRow, ThreadRule, ThreadStatus } from './part/thread.ts'
