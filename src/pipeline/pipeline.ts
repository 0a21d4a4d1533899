/** A checked agent, the result of `parsePipeline`. Plain data without references to files or registries. */
import type { ContextConfig } from './context-config.ts'
import type { Expression } from './expression.ts'
import type { Secret } from './inlined.ts'
import type { McpTool, SavedPrompt } from './mcp-offer.ts'
import type { ScriptLimits } from './script-limits.ts'
import type { SkillUse } from './skill-list.ts'
import type { ValueSchema } from './value-schema.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import type { AgentAccess } from '../part/principal.ts'
import type { Approval } from '../part/request-part.ts'

/** A checked agent: plain data and its source text. */
export interface Pipeline {
  /** The YAML text with the contents of prompt files inserted: recorded with every run. */
  text: string
  /** The text of the file itself, if it uses prompt files. */
  source?: string
  metadata: {
    name?: string
    version?: string
    description?: string
    aliases?: string[]
    /** Left out of lists, but still usable by name. */
    hidden?: boolean
    /** Saved first messages of a user, for MCP clients. */
    prompts?: SavedPrompt[]
    /** The agent as a tool of MCP clients. */
    mcp?: McpTool
  }
  /** JSON Schema of `$input`, enforced by `checkInput`. Other keys are allowed. */
  input?: ValueSchema
  budget?: Budget
  timeouts?: Timeouts
  limits?: AgentLimits
  workflow: Step[]
  after: Step[]
  /** Template for the recorded output and JSON answers. */
  return?: unknown
  /** JSON Schema of the agent's value, which is checked. */
  output?: ValueSchema
  /** Who may use it. Default: everybody who may start runs. */
  access?: AgentAccess
  onDisconnect?: DisconnectPolicy
  onBusy?: BusyPolicy
  history?: HistoryPolicy
  /** The next message of a thread goes to the agent that has answered last. */
  sticky?: boolean
  recover: boolean
  /** Folders with instructions for special tasks. */
  skills?: SkillUse[]
  /** What is no mistake, but not what its author may expect. For `millrace check`. */
  warnings?: Fault[]
  /** The agent that answers calls of clients on the side, such as titles: see `runtime/side-calls.ts`. */
  sideCalls?: string
}

/** The action on a run when its last reader disconnects. `cancelAfter` in ms. */
export type DisconnectPolicy = 'cancel' | 'detach' | { cancelAfter: number }
/** The effect of a new message while a run of its thread is active. */
export type BusyPolicy = 'interrupt' | 'queue' | 'reject' | 'steer'
/** Where the earlier messages come from: the client's request or the server's record of the thread. */
export type HistoryPolicy = 'client' | 'server'

/** Limits that include sub-agents. A missing key means no limit. */
export interface Budget {
  tokens?: number
  usd?: number
  seconds?: number
  /** Model calls and tool calls. */
  steps?: number
}
/** Limits of model output, and of runs at the same time. */
export interface AgentLimits {
  /** UTF-16 units of one model answer. */
  answerChars?: number
  /** Tool calls of one model answer. */
  toolCalls?: number
  /** Runs that execute at the same time, in all processes of the store. */
  activeRuns?: number
  /** Calls of agent tools in one run. */
  agentCalls?: number
  /** Agent tools of one run that work at the same time. */
  parallelAgents?: number
}
/** Milliseconds, or `none` to disable a default. */
export type TimeLimit = number | 'none'
export interface StepTimeouts {
  /** From a model call's start to its first content. */
  firstToken?: TimeLimit
  /** Between two chunks of a model's stream. */
  idle?: TimeLimit
  /** One whole step of the file. */
  step?: number
}
export interface Timeouts extends StepTimeouts {
  run?: TimeLimit
}

interface StepBase {
  id: string
  /** Name of the variable that holds the step's value for later steps. */
  result?: string
  /** For this step and everything inside it, in addition to the file's budget. */
  budget?: Budget
  timeouts?: StepTimeouts
  /** Line of the step in the file, from 1. */
  line: number
}
/**
 * Containers contain lists of steps. The value of a list is the value of its last step. Results set inside a list are local
 * to it and to nested lists; after the container only its own `result` remains.
 */
export type Step =
  | (StepBase & { type: 'llm'; config: LlmConfig })
  | (StepBase & { type: 'router'; config: RouterConfig })
  | (StepBase & { type: 'memory'; config: MemoryConfig })
  | (StepBase & { type: 'output-generator'; config: OutputConfig })
  | (StepBase & { type: 'call-agent'; config: CallAgentConfig })
  | (StepBase & { type: 'mcp-tool'; config: McpToolConfig })
  | (StepBase & { type: 'cli-agent'; config: CliAgentConfig })
  | (StepBase & { type: 'script'; config: ScriptConfig })
  | (StepBase & { type: 'condition'; config: ConditionConfig })
  | (StepBase & { type: 'loop'; config: LoopConfig })
  | (StepBase & { type: 'parallel'; config: ParallelConfig })
  | (StepBase & { type: 'custom'; stepType: string; config: unknown })

/** A step of a type that ships with Millrace. */
export type BuiltinStep = Exclude<Step, { type: 'custom' }>

export interface MemoryConfig {
  action: 'recall' | 'store'
  /** Default: the last user message. */
  query?: string
  limit: number
  /** Maximum number of earlier runs to read. */
  runs: number
  /** Template for the facts to store. Default: the last user message. */
  facts?: unknown
}

export interface OutputConfig {
  /** Template: `$` references in its strings are resolved. */
  template?: unknown
  /** Model text to read JSON from, bare or in a fenced code block. */
  json?: string
}

export interface CallAgentConfig {
  /** An id, or a reference whose value must pass `agentIdFault` before it is looked up. */
  agent: string
  /** Template for the called agent's `$input`. Default: the caller's `$input`. */
  input?: unknown
  /** Whether the call is the answer. Default: true if the call is the last step. */
  stream?: boolean
}

export interface McpToolConfig {
  server: string
  tool: string
  /** Template for the tool's arguments. */
  input: unknown
  /** ms */
  timeout?: number
}

/** Value: the value of the list that ran, or null if `if` is false and `else` is empty. */
export interface ConditionConfig {
  if: Expression
  then: Step[]
  else: Step[]
}

/**
 * Value: a list with the value of every round. Exactly one of `over` and `while` is set. Variables of a round are visible in
 * the next one: `$draft?` is the value of the previous round until this round sets it.
 */
export interface LoopConfig {
  /** A reference to a list, or a template for one. A list longer than `max` is an error before the first round. */
  over?: unknown
  /** Checked before every round. The loop ends after `max` rounds in any case. */
  while?: Expression
  max: number
  /** With `over`: name of the variable for the current item. `$index` counts rounds from 0 in every loop. */
  as: string
  steps: Step[]
}

/** Value: a map from branch name to the branch's value. Branches do not see each other's variables. */
export interface ParallelConfig {
  /** In file order: wires with a single text send several answers in this order. */
  branches: { name: string; steps: Step[] }[]
  order: 'declared' | 'live'
  onError: 'fail' | 'continue'
}

/** Names defined outside the file; any other name is a load error. */
export interface Known {
  stepTypes: readonly string[]
  /** Built-in types replaced by a handler of the program: the shapes of their values are unknown. */
  replaced?: readonly string[]
  tools: readonly string[]
  callbacks: readonly string[]
  /** Prefixes of model names: providers and endpoints. */
  providers: readonly string[]
  /** Ids and aliases. If undefined, `checkCalls` checks them once all agents are loaded. */
  agents?: readonly string[]
  /** Names of MCP servers. Not checked if undefined. */
  mcpServers?: readonly string[]
  /** Variables that `$env` may read. Not checked if undefined. */
  env?: readonly string[]
  /** Claims that `$user.claims` may have. Not checked if undefined. */
  claims?: readonly string[]
  /** Names of models that the config has, for a choice: any other of a provider may be used. */
  models?: readonly string[]
  /** The models whose window is known. Not checked if undefined. */
  windows?: readonly string[]
  /** Whether there is a default model. Not checked if undefined. */
  hasDefaultModel?: boolean
  /** Secrets that the text must not contain. Not checked if undefined. */
  secrets?: readonly Secret[]
  /** The first mistake in the syntax of a script; line and column count from 1. Not checked if undefined. */
  checkScript?(code: string): { line: number; column: number; message: string } | undefined
}

/** A mistake in a YAML text with its place: line and column count from 1. */
export interface Fault {
  line: number
  column: number
  message: string
  /** Set on the last fault of a text with too many: how many more places have faults. */
  more?: number
}

/** The typed config of a `cli-agent` step. */
export interface CliAgentConfig {
  cli: 'claude' | 'codex' | 'gemini' | 'qwen'
  /** The program and its first arguments. Default: the name of the CLI. */
  command?: [program: string, ...args: string[]]
  /** Text with references, or a reference to text or messages. */
  prompt: string
  /** Begins with the folder that it must not leave. */
  cwd: string
  model?: string
  permissionMode?: string
  allowedTools?: string[]
  /** Names of environment variables; one that ends in `?` may be unset. */
  env: string[]
  args: string[]
  rawLog: boolean
  /** Whether it is the answer. Default: true if it is the last step. */
  stream?: boolean
  onStreamPart?: string
  onProgress?: string
  onToolCall?: string
}

/** The tools that a model or a script may call: the items of one list `tools` in the file. */
export interface ToolGroup {
  tools: ToolUse[]
  /** MCP servers whose tools are offered as `server_tool`: the items `{mcp: server}` of `tools`. */
  toolSources?: McpToolUse[]
  /** Tools that run in the client: the items with `client: true` of `tools`. */
  clientTools?: ClientToolUse[]
  /** Agents that may be called: the items `{agent: id}` of `tools`. */
  agentTools?: AgentToolUse[]
}

/** Value: what the script returns. */
export interface ScriptConfig {
  /** The script, or a single reference to its text. Not a template: any other `$` belongs to the script. */
  code: string
  /** Template for the script's `input`: a map, or a reference. */
  input?: unknown
  /** What the script may call. */
  uses: ToolGroup
  limits: ScriptLimits
  /** JSON Schema of the value, which is checked. */
  output?: ValueSchema
}

/** A tool whose argument is a script that calls other tools. */
export interface CodeToolUse {
  name: string
  uses: ToolGroup
  limits: ScriptLimits
  inline?: Inline
}

/**
 * The typed config that `llm` and `router` share. `messages` may still be a reference (`$input.messages`).
 * All durations are in milliseconds.
 */
export interface ToolLoopConfig extends ToolGroup {
  model?: string
  /** Models to try in order when the previous one refuses: the rest of `model: [a, b, c]`. */
  fallbacks?: string[]
  system?: string
  messages: string | Message[]
  stage?: string
  /** Skills that the model may read. */
  skills?: SkillUse[]
  /** Tools that a script may call which the model writes: the items `{code: [...]}` of `tools`. */
  codeTools?: CodeToolUse[]
  toolChoice?: 'auto' | 'none' | 'required' | { tool: string }
  maxSteps: number
  temperature?: number
  maxOutputTokens?: number
  topP?: number
  stopSequences?: string[]
  seed?: number
  reasoning?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  providerOptions?: Record<string, Record<string, unknown>>
  headers?: Record<string, string>
  /** What happens when the conversation is longer than the model's window. Absent: the call fails. */
  context?: ContextConfig
  /** Prompt caching. Default: that of the config. */
  cache?: 'auto' | 'none' | '1h'
  /** For results of tools that set none. */
  inline?: Inline
  retries: number
  onChunk?: string
  onStepFinish?: string
  onFinish?: string
  onError?: string
  onAbort?: string
}

export interface LlmConfig extends ToolLoopConfig {
  stream: boolean
  /** The answer must be JSON that matches `schema`. */
  output?: {
    schema: ValueSchema
    /** How many times invalid JSON is returned to the model with its errors before the step fails. */
    retries?: number
  }
}

export interface RouterConfig extends ToolLoopConfig {
  /** Whether the router may also call the tools that a client sends with its request. */
  requestTools: boolean
}

/** Characters of a tool's result that the model gets whole; of a longer one it gets the beginning, the end and a handle. */
export type Inline = number | 'none'

/** A tool of a step: a registered name or an MCP tool's `server_tool`, with the settings that the file overrides. */
export interface ToolUse {
  name: string
  description?: string
  approval?: Approval
  timeout?: number
  inline?: Inline
  /** The model finds it with `find_tools` before it can call it. */
  defer?: boolean
}

/** A tool that runs in the client. */
export interface ClientToolUse extends Omit<ToolSpec, 'approval'> {
  approval?: Approval
  inline?: Inline
}

/** An agent that the model may call as a tool. */
export interface AgentToolUse {
  /** Its id or alias. */
  agent: string
  /** The name of the tool. */
  name: string
  /** Default: the description of the agent. */
  description?: string
  /** Template for the inputs that the file fixes: the model does not see them. */
  input?: Record<string, unknown>
  /** It gets the conversation so far. */
  history?: boolean
  /** It may call the tools that a client sends with its request. */
  clientTools?: boolean
  /** It takes over: its answer is the answer of the step. */
  handoff?: boolean
  /** It may lead back to this file. */
  recursive?: boolean
  approval?: Approval
  inline?: Inline
  /** For each call, in addition to the agent's own. */
  budget?: Budget
  timeouts?: Pick<Timeouts, 'run'>
}

/** All tools of an MCP server, or only `tools` (by their names on the server, without the prefix). */
export interface McpToolUse {
  mcp: string
  tools?: string[]
  approval?: Approval
  timeout?: number
  inline?: Inline
  /** The model finds them with `find_tools` before it can call them; false: it always sees them. */
  defer?: boolean
}
