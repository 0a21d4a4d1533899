/** The agent of a column, and what the column changes of it. */
import { useEffect, useMemo } from 'react'
import type { AgentSettings, StepChange, StepSettings } from '../../../../src/part/agent-settings.ts'
import { messageOf } from '../../../../src/part/error.ts'
import { api } from '../../../data/client.ts'
import { followAgents } from '../../../data/live.ts'
import { useResource } from '../../../data/resource.ts'
import { withSettings } from '../override.ts'
import { settingsIn, type ColumnSpec } from './columns.ts'

export interface ColumnAgent {
  settings: AgentSettings | undefined
  /** The one whose settings the column changes. */
  step: StepSettings | undefined
  changes: readonly StepChange[]
  /** The changes are those of the column. */
  isReady: boolean
  /** Why the column cannot be asked. */
  fault: string | undefined
}

/** `reason`: why nothing may be changed. */
export function useColumnAgent(spec: ColumnSpec, reason: string | undefined): ColumnAgent {
  const path = `/api/agents/${encodeURIComponent(spec.agent)}/settings`
  const { value: settings, error, reload } = useResource(path, (signal) => api<AgentSettings>(path, { signal }))
  useEffect(() => followAgents(reload), [reload])
  const step = settings && answeringStep(settings)
  const wanted = settingsIn(spec)
  const isWanted = Object.keys(wanted).length > 0
  const text = JSON.stringify(step === undefined || !isWanted ? [] : withSettings([], step, wanted))
  const changes = useMemo(() => JSON.parse(text) as StepChange[], [text])
  const fault = !isWanted
    ? undefined
    : (reason ??
      (settings === undefined
        ? error === undefined
          ? undefined
          : messageOf(error)
        : step === undefined
          ? 'No step of this agent calls a model.'
          : undefined))
  return { settings, step, changes, isReady: !isWanted || settings !== undefined, fault }
}

/** The step whose text is the answer; of an agent that returns something else, the last one that calls a model. */
export function answeringStep({ steps }: AgentSettings): StepSettings | undefined {
  return steps.findLast(({ answers }) => answers) ?? steps.at(-1)
}
