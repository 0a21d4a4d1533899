/** `millrace`: the engine. Runs wherever Web APIs do. */
export {
  defineConfig,
  defineTool,
  type Config,
  type OpenAiConfig,
  type RecordConfig,
  type ServerConfig,
} from './library/config.ts'
export { createRuntime, type CreateRuntimeOptions } from './library/create-runtime.ts'
export type { Pack } from './library/packs.ts'
export { callbackRegistry, handlerRegistry, toolRegistry } from './library/registries.ts'
export { loadYaml, parseYaml, type ParsedYaml, type ParseOptions } from './library/yaml.ts'
export { MillraceError, type ErrorValue } from './part/error.ts'
export { formatFaults, parsePipeline, PipelineError } from './pipeline/parse.ts'
export type { Fault, Known, Pipeline, Step } from './pipeline/pipeline.ts'
export type { McpServer } from './run/mcp/server.ts'
export { fromLangChain, type LangChainChatModel } from './run/models/langchain.ts'
export type { Endpoint } from './run/models/resolver.ts'
export type {
  Callback,
  ExecutionContext,
  LanguageModel,
  Pricing,
  PrimitiveHandler,
  ToolContext,
  ToolImplementation,
} from './run/ports.ts'
export { createRelay, type Chainable, type Chained, type Relay, type RelayOptions } from './run/relay.ts'
export type { Agent, AgentSource, Answered, Run, RunResult, Runtime, StartOptions } from './run/runtime.ts'
export type { LlmResult } from './run/steps/llm.ts'
export type { Recalled, StoredFacts } from './run/steps/memory.ts'
export type { RouterResult } from './run/steps/router.ts'
export type { LlmStepResult, ToolLoopResult } from './run/tool-loop.ts'
export { WorkflowExecutor, type ExecuteOptions, type ExecutorOptions } from './server/workflow-executor.ts'
