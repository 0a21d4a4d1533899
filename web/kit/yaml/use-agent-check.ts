/** What the server finds in the text of an agent, asked again shortly after it has changed. */
import { useEffect, useState } from 'react'
import type { AgentCheck } from '../../../src/part/agent-tree.ts'
import { api } from '../../data/client.ts'

const pause = 300

/** Undefined until the server has looked for the first time. `isOn`: not for those who may not edit. */
export function useAgentCheck(id: string, text: string, isOn: boolean): AgentCheck | undefined {
  const [checked, setChecked] = useState<AgentCheck>()
  useEffect(() => {
    if (!isOn || text === '') return
    const leave = new AbortController()
    const timer = setTimeout(() => {
      checkAgent(id, text, leave.signal).then(
        (found) => !leave.signal.aborted && setChecked(found),
        // The next change asks again; what stops it is told by the connection's state.
        () => undefined,
      )
    }, pause)
    return () => {
      clearTimeout(timer)
      leave.abort()
    }
  }, [id, text, isOn])
  return checked
}

function checkAgent(id: string, text: string, signal: AbortSignal): Promise<AgentCheck> {
  return api('/api/agents/check', { method: 'POST', body: { id, text }, signal })
}
