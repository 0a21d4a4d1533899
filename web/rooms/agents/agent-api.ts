/** The routes of agents' files. */
import type { AgentTree } from '../../../src/part/agent-tree.ts'
import { api } from '../../data/client.ts'
import type { AgentFacts } from '../../data/hooks.ts'
import { followAgents } from '../../data/live.ts'

export interface AgentFile extends Partial<AgentFacts> {
  id: string
  /** As it is on disk, with its mistakes. Absent: the server does not show it. */
  text?: string
  etag?: string
  tree?: AgentTree
  file?: string
}

const pathOf = (id: string) => `/api/agents/${encodeURIComponent(id)}`

export function readAgent(id: string, signal?: AbortSignal): Promise<AgentFile> {
  return api(pathOf(id), signal === undefined ? {} : { signal })
}

/** Rejects with status 409 when the file has changed since `etag`, or when other agents call this one. Its runs keep the old id. */
export function renameAgent(id: string, to: string, etag: string): Promise<unknown> {
  return leaving(id, () => api(`${pathOf(id)}/rename`, { method: 'POST', body: { to, etag } }))
}

/** As for a new name. */
export function removeAgent(id: string, etag: string): Promise<unknown> {
  return leaving(id, () => api(`${pathOf(id)}?etag=${encodeURIComponent(etag)}`, { method: 'DELETE' }))
}

/** The agents that are renamed or deleted here: their pages ask for them no more, whichever comes first, the answer or the news. */
const gone = new Set<string>()

async function leaving(id: string, act: () => Promise<unknown>): Promise<unknown> {
  gone.add(id)
  try {
    return await act()
  } catch (error) {
    gone.delete(id)
    throw error
  }
}

/** Calls back when agents have changed, as long as this one is there. */
export function followAgent(id: string, onChange: () => void): () => void {
  gone.delete(id)
  return followAgents(() => gone.has(id) || onChange())
}

/** Rejects with status 409 when the file has changed since `etag`, and with 422 when the text has faults. */
export function saveAgent(id: string, text: string, etag: string | undefined): Promise<{ etag: string }> {
  return api(pathOf(id), { method: 'POST', body: { text, etag } })
}
