/** A checked agent: what `parsePipeline` makes of a YAML text. Plain data; nothing in it refers to a file or a registry. */
import type { Expression } from './expression.ts'
import type { LlmConfig, RouterConfig } from './llm-config.ts'
import type { ValueSchema } from './value-schema.ts'

/** A checked agent: plain data, and the text it came from. */
export interface Pipeline {
  /** The YAML text it was parsed from, the contents of prompt files in place: recorded with every run. */
  text: string
  /** The text as it stands in the file, when that names prompt files. */
  source?: string
  metadata: {
    name?: string
    version?: string
    description?: string
    aliases?: string[]
    /** Kept out of lists; answers by its name all the same. */
    hidden?: boolean
  }
  /** What `$input` must hold, as JSON Schema: `checkInput` enforces it. Further keys are allowed. */
  input?: ValueSchema
  budget?: Budget
  timeouts?: Timeouts
  limits?: AnswerLimits
  workflow: Step[]
  after: Step[]
  /** A template for the recorded output and JSON answers. */
  return?: unknown
  onDisconnect?: DisconnectPolicy
  onBusy?: BusyPolicy
  history?: HistoryPolicy
  recover: boolean
}

/** What a disconnect of the last reader means for a run. `cancelAfter` in ms. */
export type DisconnectPolicy = 'cancel' | 'detach' | { cancelAfter: number }
/** What a new message means while a run of its thread is active. */
export type BusyPolicy = 'interrupt' | 'queue' | 'reject'
/** Who says which messages came before: the client, or the server's own record of the thread. */
export type HistoryPolicy = 'client' | 'server'

/** What may be spent, sub-agents included; what is not named is not limited. */
export interface Budget {
  tokens?: number
  usd?: number
  seconds?: number
  /** Model calls and tool calls. */
  steps?: number
}
/** How much may come from a model. */
export interface AnswerLimits {
  /** UTF-16 units of one model answer. */
  answerChars?: number
}
/** Milliseconds. `none` where a default would hold otherwise. */
export type TimeLimit = number | 'none'
export interface StepTimeouts {
  /** From a model call's start to its first content. */
  firstToken?: TimeLimit
  /** Between two parts of a model's stream. */
  idle?: TimeLimit
  /** The whole of one step of the file. */
  step?: number
}
export interface Timeouts extends StepTimeouts {
  run?: TimeLimit
}

interface StepBase {
  id: string
  /** Name of the variable that holds the step's value for later steps. */
  result?: string
  /** For this step and what runs inside it, beside the file's own. */
  budget?: Budget
  timeouts?: StepTimeouts
  /** Where the step stands in the file, from 1. */
  line: number
}
/**
 * Containers hold further steps. The value of a list of steps is that of its last one. Results that are set inside are
 * variables of that list and of lists nested in it, and are gone after it: only the container's own `result` remains.
 */
export type Step =
  | (StepBase & { type: 'llm'; config: LlmConfig })
  | (StepBase & { type: 'router'; config: RouterConfig })
  | (StepBase & { type: 'memory'; config: MemoryConfig })
  | (StepBase & { type: 'output-generator'; config: OutputConfig })
  | (StepBase & { type: 'call-agent'; config: CallAgentConfig })
  | (StepBase & { type: 'mcp-tool'; config: McpToolConfig })
  | (StepBase & { type: 'condition'; config: ConditionConfig })
  | (StepBase & { type: 'loop'; config: LoopConfig })
  | (StepBase & { type: 'parallel'; config: ParallelConfig })
  | (StepBase & { type: 'custom'; stepType: string; config: unknown })

/** A step of a type that ships with Millrace. */
export type BuiltinStep = Exclude<Step, { type: 'custom' }>

export interface MemoryConfig {
  action: 'recall' | 'store'
  /** Default: the last message of the user. */
  query?: string
  limit: number
  /** Most earlier runs that are read. */
  runs: number
  /** A template for what is stored; default: the last message of the user. */
  facts?: unknown
}

export interface OutputConfig {
  /** A template: `$` references in its strings are resolved. */
  template?: unknown
  /** Model text to read JSON out of, fenced or bare. */
  json?: string
}

export interface CallAgentConfig {
  /** An id, or a reference whose value must pass `agentIdFault` before it is looked up. */
  agent: string
  /** A template for the other agent's `$input`; without it that is ours. */
  input?: unknown
  /** Whether the call is the answer; without it that is so when the call is the last step. */
  stream?: boolean
}

export interface McpToolConfig {
  server: string
  tool: string
  /** A template for the tool's arguments. */
  input: unknown
  /** ms */
  timeout?: number
}

/** Value: that of the list that ran; null when `if` is false and `else` is empty. */
export interface ConditionConfig {
  if: Expression
  then: Step[]
  else: Step[]
}

/**
 * Value: a list with the value of every round. One of `over` and `while` is set. Variables of a round stay for the next
 * one, so that `$draft?` means that of the round before until this round has set it.
 */
export interface LoopConfig {
  /** A reference to a list, or a template of one. A list longer than `max` is an error before the first round. */
  over?: unknown
  /** Looked at before every round; after `max` rounds the loop ends, true or not. */
  while?: Expression
  max: number
  /** Name of the variable that holds the round's item when there is `over`; `$index` counts rounds from 0 in any loop. */
  as: string
  steps: Step[]
}

/** Value: a map from branch name to the branch's value. Branches do not see each other's variables. */
export interface ParallelConfig {
  /** As they stand in the file: several answers come in this order where a wire has one text. */
  branches: { name: string; steps: Step[] }[]
  order: 'declared' | 'live'
  onError: 'fail' | 'continue'
}

/** Names that exist outside the file; a name that is not among them is a load error. */
export interface Known {
  stepTypes: readonly string[]
  /** Built-in types that a handler of the program has replaced: what they give is not known. */
  replaced?: readonly string[]
  tools: readonly string[]
  callbacks: readonly string[]
  /** Names before the colon of a model: providers and endpoints. */
  providers: readonly string[]
  /** Ids and aliases. Left out: not checked here, but by `checkCalls` once all agents are loaded. */
  agents?: readonly string[]
  /** Names of MCP servers. Left out: not checked. */
  mcpServers?: readonly string[]
  /** Variables that `$env` may read. Left out: not checked. */
  env?: readonly string[]
  /** Whether there is a model for steps that name none. Left out: not checked. */
  hasDefaultModel?: boolean
  /** What the text must not hold. Left out: not checked. */
  secrets?: readonly Secret[]
}

export interface Secret {
  value: string
  /** Where it is kept: `the environment variable OPENAI_API_KEY`. */
  from: string
  /** What to write instead. */
  cure: string
}

/** What is wrong in a YAML text, and where: line and column count from 1. */
export interface Fault {
  line: number
  column: number
  message: string
  /** Set on the last one of a text with too many faults: how many further places it stands for. */
  more?: number
}
