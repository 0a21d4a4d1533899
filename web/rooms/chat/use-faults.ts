/** What the server finds in the changes of a chat, a moment after the last one. */
import { useEffect, useState } from 'react'
import type { SettingFault, StepChange } from '../../../src/part/agent-settings.ts'
import { toErrorValue } from '../../../src/part/error.ts'
import { inShort } from '../../kit/error-words.ts'
import { changedText } from './override.ts'

export type FoundFault = Pick<SettingFault, 'message' | 'step' | 'setting'>

const pause = 300
const none: readonly FoundFault[] = []

export function useFaults(agentId: string, changes: readonly StepChange[], text?: string): readonly FoundFault[] {
  const [found, setFound] = useState<readonly FoundFault[]>(none)
  useEffect(() => {
    if (changes.length === 0) return
    const leave = new AbortController()
    const timer = setTimeout(() => {
      changedText(agentId, changes, { signal: leave.signal, ...(text !== undefined && { text }) }).then(
        ({ faults }) => !leave.signal.aborted && setFound(faults),
        (error: unknown) => !leave.signal.aborted && setFound([{ message: inShort(toErrorValue(error)) }]),
      )
    }, pause)
    return () => {
      clearTimeout(timer)
      leave.abort()
    }
  }, [agentId, changes, text])
  return changes.length === 0 ? none : found
}
