/** `millrace/client`: a server's runs over HTTP, and the types of everything. Browser-safe. */
export { MillraceClient, type ClientAnswer, type ClientOptions, type ShownRun } from './client/client.ts'
export type { ClientResult, ClientRun, ClientTool, RunOptions } from './client/client-run.ts'
export type { FollowOptions } from './client/follow.ts'
export type { Config } from './library/config.ts'
export type { Pack } from './library/packs.ts'
export type { ParsedYaml } from './library/yaml.ts'
export type { Entry, EntryOf, RecordedPart } from './part/entry.ts'
export { MillraceError, type ErrorValue } from './part/error.ts'
export type { RunView, StepView, Summary } from './part/fold.ts'
export type { RunQuery, RunRow, RunStatus } from './part/log.ts'
export type * from './part/message.ts'
export type * from './part/part.ts'
export type { Usage } from './part/usage.ts'
export type { Pipeline } from './pipeline/pipeline.ts'
export type {
  Callback,
  ExecutionContext,
  LanguageModel,
  PrimitiveHandler,
  ToolContext,
  ToolImplementation,
} from './run/ports.ts'
