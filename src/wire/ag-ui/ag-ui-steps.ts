/** The steps of the pipeline, and the model calls of what is shown. Steps inside a tool belong to the tool, unless it is an agent. */
import { LazySet } from '../../fold/lazy-map.ts'
import type { EntryOf } from '../../part/entry.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { isUnder } from '../../part/path.ts'
import { kindOf, type StepKind } from '../../part/step-kind.ts'
import type { AgUiOut } from './ag-ui-event.ts'

export interface AgUiSteps {
  /** Call it after the entry was noted as answering. */
  start(entry: EntryOf<'step-start'>): void
  finish(entry: EntryOf<'step-finish'>): void
  /** Ends the open steps at and under this path, inner ones first. Default: all. */
  close(path?: string): void
}

const calls: ReadonlySet<StepKind> = new Set(['tool-call', 'client-tool', 'approval'])

interface StepsOptions {
  isShown(path: string): boolean
  subagentAt(path: string): string | undefined
}

export function createAgUiSteps(out: AgUiOut, { isShown, subagentAt }: StepsOptions): AgUiSteps {
  /** With the id of the subagent. */
  const open = new Map<string, string | undefined>()
  const tools = new LazySet<string>()

  function isInTool(path: string): boolean {
    for (const tool of tools) if (isUnder(path, tool)) return true
    return false
  }

  return {
    start(entry) {
      const { step } = entry
      const kind = kindOf(entry)
      if (calls.has(kind)) return void tools.add(step)
      if (isUnder(step, 'after')) return
      if (!isShown(step) && (kind === 'model-call' || isInTool(step))) return
      const subagentRunId = subagentAt(step)
      open.set(step, subagentRunId)
      out.send({ type: 'STEP_STARTED', stepName: nameOf(step), subagentRunId })
    },
    finish({ step, usage, finishReason }) {
      tools.delete(step)
      const subagentRunId = open.get(step)
      if (!open.delete(step)) return
      const isKnown = usage !== undefined || finishReason !== undefined
      const metadata = isKnown ? omitUndefined({ usage, finishReason }) : undefined
      out.send({ type: 'STEP_FINISHED', stepName: nameOf(step), metadata, subagentRunId })
    },
    close(path = '') {
      for (const [step, subagentRunId] of [...open].reverse()) {
        if (!isUnder(step, path)) continue
        open.delete(step)
        out.send({ type: 'STEP_FINISHED', stepName: nameOf(step), subagentRunId })
      }
    },
  }
}

/** All steps that clients see are below `main`. */
function nameOf(step: string): string {
  return step.startsWith('main/') ? step.slice('main/'.length) : step
}
