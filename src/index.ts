/** `millrace`: the engine. Runs wherever Web APIs do. */
export {
  defineConfig,
  defineTool,
  type Config,
  type OpenAiConfig,
  type MessagesConfig,
  type ResponsesConfig,
  type RateLimitConfig,
  type RecordConfig,
  type ServerConfig,
} from './project/config.ts'
export { createRuntime, type CreateRuntimeOptions } from './project/create-runtime.ts'
export type { Pack } from './project/packs.ts'
export { callbackRegistry, handlerRegistry, toolRegistry, wireRegistry } from './project/packs.ts'
export { loadYaml, parseYaml, type ParsedYaml, type ParseOptions } from './project/yaml.ts'
export { MillraceError, type ErrorValue } from './part/error.ts'
export { formatFaults, parsePipeline, PipelineError } from './pipeline/parse.ts'
export type { Fault, Known, Pipeline, Step } from './pipeline/pipeline.ts'
export type { Role, RunUser } from './part/principal.ts'
export type { McpServer } from './tools/mcp/server.ts'
export type { Endpoint } from './models/resolver.ts'
export type { Callback, ExecutionContext, PrimitiveHandler, Question, QuestionAnswer } from './engine/registry.ts'
export type { LanguageModel, Pricing } from './models/language-model.ts'
export type { ToolContext, ToolImplementation } from './tools/tool.ts'
export { createRelay, type Chainable, type Chained, type Relay, type RelayOptions } from './relay/relay.ts'
export type { Agent, AgentSource, Answered, Run, RunResult, Runtime, StartOptions } from './runtime/runtime.ts'
export type { LlmResult } from './engine/steps/llm.ts'
export type { Recalled, StoredFacts } from './engine/steps/memory.ts'
export type { RouterResult } from './engine/steps/router.ts'
export type { LlmStepResult, ToolLoopResult } from './engine/tool-loop.ts'
export { WorkflowExecutor, type ExecuteOptions, type ExecutorOptions } from './project/workflow-executor.ts'
