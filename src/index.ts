/** `millrace`: the engine. Runs wherever Web APIs do. */
export { defineConfig, defineTool, type Config } from './library/config.ts'
export { createRuntime, type CreateRuntimeOptions } from './library/create-runtime.ts'
export { MillraceError } from './part/error.ts'
export { formatFaults, parsePipeline, PipelineError } from './pipeline/parse.ts'
export type { Pipeline } from './pipeline/pipeline.ts'
export type {
  Callback,
  ExecutionContext,
  LanguageModel,
  PrimitiveHandler,
  ToolContext,
  ToolImplementation,
} from './run/ports.ts'
export type { Answered, Run, RunResult, Runtime, StartOptions } from './run/runtime.ts'
