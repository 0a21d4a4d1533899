/** What rooms ask of the server. */
import { useEffect, useState, useSyncExternalStore } from 'react'
import { createRunFold } from '../../src/fold/run-fold.ts'
import type { RunView } from '../../src/fold/run-view.ts'
import { api } from './client.ts'
import { followAgents, followRun, onConnection, readConnection, type HubConnection } from './live.ts'
import { useResource, type Resource } from './resource.ts'

export interface AgentFacts {
  id: string
  name?: string
  description?: string
  /** JSON Schema of `$input`. */
  input?: Record<string, unknown>
  /** A run fails without a message. */
  messageRequired?: boolean
  history?: string
  steps: { id: string; type: string; model?: string; stream?: boolean }[]
  tools: string[]
  skills?: { name: string; description: string }[]
}

export interface AgentFault {
  file: string
  message: string
  line?: number
  column?: number
}

/** The agents and load errors, kept up to date. */
export function useAgents(): Resource<{ agents: AgentFacts[]; errors: AgentFault[] }> {
  const agents = useResource('agents', () => api<{ agents: AgentFacts[]; errors: AgentFault[] }>('/api/agents'))
  useEffect(() => followAgents(agents.reload), [agents.reload])
  return agents
}

export function useConnection(): HubConnection {
  return useSyncExternalStore(onConnection, readConnection)
}

export interface LiveRun {
  /** Absent until its first entry is here. A new object after each frame with news. */
  view: RunView | undefined
  isGone: boolean
}

const nothing: LiveRun = { view: undefined, isGone: false }

/** The state of a run, from its start, live until it ends. For a run of any size use the outline. */
export function useLiveRun(runId: string | undefined): LiveRun {
  const [state, setState] = useState<LiveRun & { runId?: string | undefined }>(nothing)
  useEffect(() => {
    if (runId === undefined) return
    const fold = createRunFold()
    let frame: number | undefined
    const leave = followRun(runId, 0, {
      onEntries(entries) {
        for (const entry of entries) fold.apply(entry)
        frame ??= requestAnimationFrame(() => {
          frame = undefined
          setState({ runId, view: fold.view(), isGone: false })
        })
      },
      onGone() {
        setState((before) => ({ runId, view: before.runId === runId ? before.view : undefined, isGone: true }))
      },
    })
    return () => {
      leave()
      if (frame !== undefined) cancelAnimationFrame(frame)
    }
  }, [runId])
  return state.runId === runId ? state : nothing
}
