/** The steps of the pipeline, and the model calls of the answer. Steps inside a tool belong to the tool. */
import type { Answering } from '../../fold/answering.ts'
import { compact } from '../../part/compact.ts'
import type { EntryOf } from '../../part/entry.ts'
import { LateSet } from '../../fold/late-map.ts'
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

export function createAgUiSteps(out: AgUiOut, answering: Answering): AgUiSteps {
  const open = new Set<string>()
  const tools = new LateSet<string>()

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
      if (!answering.has(step) && (kind === 'model-call' || isInTool(step))) return
      open.add(step)
      out.send({ type: 'STEP_STARTED', stepName: nameOf(step) })
    },
    finish({ step, usage, finishReason }) {
      tools.delete(step)
      if (!open.delete(step)) return
      const isKnown = usage !== undefined || finishReason !== undefined
      const metadata = isKnown ? compact({ usage, finishReason }) : undefined
      out.send({ type: 'STEP_FINISHED', stepName: nameOf(step), metadata })
    },
    close(path = '') {
      for (const step of [...open].reverse()) {
        if (!isUnder(step, path)) continue
        open.delete(step)
        out.send({ type: 'STEP_FINISHED', stepName: nameOf(step) })
      }
    },
  }
}

/** All steps that clients see are below `main`. */
function nameOf(step: string): string {
  return step.startsWith('main/') ? step.slice('main/'.length) : step
}
