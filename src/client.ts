/** `millrace/client`: a server's runs over HTTP, and the types of everything. Browser-safe. */
export {
  MillraceClient,
  type ClientAnswer,
  type ClientConsent,
  type ClientOptions,
  type ShownRun,
} from './client/client.ts'
export type { AttachOptions, ClientResult, ClientRun } from './client/client-run.ts'
export { defineTool } from './client/client-tool.ts'
export type { ClientTool, ClientToolContext, ClientTools, ToolOptions, ToolSchema } from './client/client-tool.ts'
export type { Confirmation, Confirmed } from './client/serve-tools.ts'
export { createChatTransport, type ChatTransportOptions } from './client/chat-transport.ts'
export { createAgentSession } from './client/agent-session.ts'
export { createLiveRun, type LiveRun, type LiveRunState, type LogLine } from './client/live-run.ts'
export type { LogRow } from './fold/log-rows.ts'
export type { StepNode } from './fold/step-tree.ts'
export type { OutlineBlock, OutlineMark, OutlineStep } from './fold/outline-item.ts'
export type * from './client/agent-message.ts'
export type {
  AgentSession,
  UserContent as Said,
  SessionOptions,
  SessionRequest,
  SessionSettings,
  SessionState,
  SessionStatus,
} from './client/session-state.ts'
export type { ClientSocket, OpenSocket } from './client/lazy-link.ts'
export type { RequestOptions } from './client/request.ts'
export type { RunOptions } from './client/start-run.ts'
export type { ClientThread, ShownThread, ThreadFilter, ThreadRunOptions } from './client/thread.ts'
export type { FollowOptions } from './client/follow.ts'
export type { Config } from './project/config.ts'
export type { Pack } from './project/packs.ts'
export type { ParsedYaml } from './project/yaml.ts'
export type { Entry, EntryOf, RecordedPart } from './part/entry.ts'
export { MillraceError, type ErrorValue } from './part/error.ts'
export type { RequestView, RunView, StepView, Summary } from './fold/run-view.ts'
export type { Used, UsedByAgent, UsedByAll, UsedByModel, UsedByStep } from './fold/usage-fold.ts'
export type { RunQuery, RunRow, RunStatus } from './part/log.ts'
export type * from './part/message.ts'
export type * from './part/part.ts'
export type { Usage } from './part/usage.ts'
export type { Pipeline } from './pipeline/pipeline.ts'
export type { Callback, ExecutionContext, PrimitiveHandler } from './engine/registry.ts'
export type { LanguageModel } from './models/language-model.ts'
export type { ToolContext, ToolImplementation } from './tools/tool.ts'
