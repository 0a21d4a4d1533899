/** What a person may change of an agent for one chat: the settings of its model calls, without its file. */
import type { AgentFault } from './agent-tree.ts'

/** A tool of a step, or one that it could have. */
export interface ToolFacts {
  /** Names it in a list of changes: for all tools of an MCP server `mcp:` and the server. */
  name: string
  /** `server`: it runs here. `client`: in the client. `agent`: another agent. `mcp`: all tools of a server. `script`: a script that calls tools. */
  kind: 'server' | 'client' | 'agent' | 'mcp' | 'script'
  description?: string
  inputSchema?: unknown
}

/** A step that calls a model. */
export interface StepSettings {
  /** Its place in the file: `main/answer`, or `main/both/left/ask` in a container. */
  path: string
  type: string
  /** Its text is the answer. */
  answers?: true
  /** Absent: the default of the server. */
  model?: string
  /** The models behind the first. */
  fallbacks?: string[]
  temperature?: number
  /** Absent also where the caller may not read texts of agents. */
  system?: string
  tools: ToolFacts[]
}

export interface AgentSettings {
  /** Its file, if it has one that the caller may read. */
  file?: string
  steps: StepSettings[]
  /** Names of models that this server has, for a choice: any other may be written. */
  models: string[]
  /** The tools of the server. Absent where the caller may not read texts of agents. */
  tools?: ToolFacts[]
}

/** A setting that may be changed. */
export type Setting = 'model' | 'temperature' | 'system' | 'tools'

/** What is another one in a step. null: the file says nothing, so the default counts. */
export interface StepChange {
  step: string
  model?: string | null
  temperature?: number | null
  system?: string | null
  /** Name → whether the step has it. */
  tools?: Record<string, boolean>
}

/** A mistake in the text with the changes. `setting`: what was changed is wrong. */
export interface SettingFault extends AgentFault {
  step?: string
  setting?: Setting
}

/** The text of an agent with changes. */
export interface ChangedText {
  text: string
  faults: SettingFault[]
  /** Of a text that was asked about without changes, and has no faults. */
  settings?: AgentSettings
}
