/** The changes of a chat, if whoever sits here may make any. */
import { useCallback, useState, useSyncExternalStore } from 'react'
import type { StepChange, StepSettings } from '../../../src/part/agent-settings.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { useServer } from '../../data/server.ts'
import { keepChanges, onChanges, readChanges, withSettings, type Settings } from './override.ts'

export interface Changes {
  changes: readonly StepChange[]
  /** Another one when fields begin anew: of another chat, or after a reset. */
  round: string
  mayChange: boolean
  set(file: StepSettings, next: Settings): void
  reset(): void
  /** The chat has got its thread. */
  moveTo(threadId: string): void
}

const none: readonly StepChange[] = []

export function useChanges(agentId: string, threadId: string | undefined): Changes {
  const { facts } = useServer()
  const mayChange = useMayEdit(facts?.edit)
  const place = `${agentId}:${threadId ?? ''}`
  const kept = useSyncExternalStore(onChanges, () => readChanges(place))
  const set = useCallback<Changes['set']>(
    (file, next) => keepChanges(place, withSettings(readChanges(place), file, next)),
    [place],
  )
  const [resets, setResets] = useState(0)
  const reset = useCallback(() => {
    keepChanges(place, none)
    setResets((n) => n + 1)
  }, [place])
  const moveTo = useCallback(
    (thread: string) => {
      const to = `${agentId}:${thread}`
      if (place !== `${agentId}:` || readChanges(place).length === 0) return
      keepChanges(to, readChanges(place))
      keepChanges(place, none)
    },
    [agentId, place],
  )
  // Until the server has told, it is not known that they count for nothing.
  return {
    changes: facts === undefined || mayChange ? kept : none,
    round: `${place} ${resets}`,
    mayChange,
    set,
    reset,
    moveTo,
  }
}
