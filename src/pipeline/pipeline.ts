/** A checked agent: what `parsePipeline` makes of a YAML text. Plain data; nothing in it refers to a file or a registry. */
import type { LlmConfig } from './llm-config.ts'

export interface Pipeline {
  /** The YAML text it was parsed from: recorded with every run. */
  text: string
  metadata: { name?: string; version?: string; description?: string; aliases?: string[] }
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

interface StepBase {
  id: string
  /** Name of the variable that holds the step's value for later steps. */
  result?: string
  /** Where the step stands in the file, from 1. */
  line: number
}
export type Step =
  | (StepBase & { type: 'llm'; config: LlmConfig })
  | (StepBase & { type: 'output-generator'; config: OutputConfig })
  | (StepBase & { type: 'custom'; stepType: string; config: unknown })

export interface OutputConfig {
  /** A template: `$` references in its strings are resolved. */
  template?: unknown
  /** Model text to read JSON out of, fenced or bare. */
  json?: string
}

/** Names that exist outside the file; a name that is not among them is a load error. */
export interface Known {
  stepTypes: readonly string[]
  tools: readonly string[]
  callbacks: readonly string[]
  /** Names before the colon of a model: providers and endpoints. */
  providers: readonly string[]
}

export interface Fault {
  line: number
  column: number
  message: string
}
