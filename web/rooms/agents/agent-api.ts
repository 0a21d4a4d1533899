/** The routes of agents' files. */
import { api } from '../../data/client.ts'
import type { AgentFacts } from '../../data/hooks.ts'

export interface Fault {
  message: string
  line?: number
  column?: number
  /** A word to put in place of another one. */
  fix?: { line: number; column: number; length: number; text: string }
}

/** A step as it stands in the file. */
export interface TreeStep {
  id: string
  type: string
  /** In the file, from 1. */
  line: number
  model?: string
  tools?: readonly string[]
  /** That it calls. */
  agent?: string
  /** A tool of an MCP server, or a CLI. */
  runs?: string
  /** At most so many rounds. */
  max?: number
  /** `then` and `else`, the steps of a loop, or the branches by name. */
  lists?: readonly { name: string; steps: readonly TreeStep[] }[]
}

export interface AgentTree {
  workflow: readonly TreeStep[]
  after: readonly TreeStep[]
}

export interface AgentFile extends Partial<AgentFacts> {
  id: string
  /** As it is on disk, with its mistakes. Absent: the server does not show it. */
  text?: string
  etag?: string
  tree?: AgentTree
  file?: string
}

export interface Checked {
  faults: readonly Fault[]
  tree?: AgentTree
}

const pathOf = (id: string) => `/api/agents/${encodeURIComponent(id)}`

export function readAgent(id: string, signal?: AbortSignal): Promise<AgentFile> {
  return api(pathOf(id), signal === undefined ? {} : { signal })
}

export function checkAgent(id: string, text: string, signal: AbortSignal): Promise<Checked> {
  return api('/api/agents/check', { method: 'POST', body: { id, text }, signal })
}

/** Rejects with status 409 when the file has changed since `etag`, and with 422 when the text has faults. */
export function saveAgent(id: string, text: string, etag: string | undefined): Promise<{ etag: string }> {
  return api(pathOf(id), { method: 'POST', body: { text, etag } })
}
