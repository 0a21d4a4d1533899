/** The changes of a chat, if whoever sits here may make any. */
import { useCallback, useState, useSyncExternalStore } from 'react'
import type { StepChange, StepSettings } from '../../../src/part/agent-settings.ts'
import { useMayEdit } from '../../data/edit-token.ts'
import { chatPlace, keepYaml, onYaml, readYaml, type OwnYaml } from '../../data/own-yaml.ts'
import { useServer } from '../../data/server.ts'
import { keepChanges, onChanges, readChanges, withSettings, type Settings } from './override.ts'

export interface Changes {
  changes: readonly StepChange[]
  yaml: OwnYaml
  /** Another one when fields begin anew: of another chat, or after a reset. */
  round: string
  mayChange: boolean
  set(file: StepSettings, next: Settings): void
  /** The changes are of this YAML. */
  adopt(yaml: string): void
  reset(): void
  /** The chat has got its thread. */
  moveTo(threadId: string): void
}

const none: readonly StepChange[] = []

export function useChanges(agentId: string, threadId: string | undefined): Changes {
  const { facts } = useServer()
  const mayChange = useMayEdit(facts?.edit)
  const place = chatPlace(agentId, threadId)
  const kept = useSyncExternalStore(onChanges, () => readChanges(place))
  const yaml = useSyncExternalStore(onYaml, () => readYaml(place))
  const set = useCallback<Changes['set']>(
    (file, next) => {
      const changes = withSettings(readChanges(place), file, next)
      keepChanges(place, changes)
      // Without the last change it is that of the file again.
      if (typeof readYaml(place) !== 'string') keepYaml(place, changes.length === 0 ? null : undefined)
    },
    [place],
  )
  const adopt = useCallback((text: string) => keepYaml(place, text), [place])
  const [resets, setResets] = useState(0)
  const reset = useCallback(() => {
    keepChanges(place, none)
    keepYaml(place, null)
    setResets((n) => n + 1)
  }, [place])
  const moveTo = useCallback(
    (thread: string) => {
      const to = chatPlace(agentId, thread)
      if (place !== chatPlace(agentId)) return
      if (readChanges(place).length > 0) keepChanges(to, readChanges(place))
      if (readYaml(place) !== undefined) keepYaml(to, readYaml(place))
      keepChanges(place, none)
      keepYaml(place, undefined)
    },
    [agentId, place],
  )
  // Until the server has told, it is not known that they count for nothing.
  return {
    changes: facts === undefined || mayChange ? kept : none,
    yaml: facts === undefined || mayChange || yaml === null ? yaml : undefined,
    round: `${place} ${resets}`,
    mayChange,
    set,
    adopt,
    reset,
    moveTo,
  }
}
