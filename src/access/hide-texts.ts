/**
 * The log without the texts of agents, for callers that may use agents but not read them: YAML texts, system prompts, and the messages that a step
 * tells its model. What a person said is in `run-start.input`. What the server says to its operators is left out, too: details of errors, and the
 * lines of programs.
 */
import type { Entry } from '../part/entry.ts'
import { unexplained } from '../part/error.ts'
import type { KeptView, RunRow } from '../part/log.ts'
import type { ToolSpec } from '../part/message.ts'

/** The same list if there is nothing to hide, so that readers share what was encoded for one of them. */
export function hideTexts(batch: Entry[]): Entry[] {
  for (let i = 0; i < batch.length; i++) if (hasText(batch[i]!)) return batch.map(withoutText)
  return batch
}

/** Warnings with words that were not written for clients. */
const internal: ReadonlySet<string> = new Set(['tool-failed', 'callback-failed', 'raw-log-lost'])

function hasText(entry: Entry): boolean {
  switch (entry.type) {
    case 'prompt':
    case 'run-start':
    case 'step-start':
    case 'resume':
    case 'cli-output':
      return true
    case 'warning':
      return internal.has(entry.code)
    case 'step-finish':
    case 'run-end':
    case 'retry':
    case 'error':
      return hasDetail(entry.error)
    default:
      return false
  }
}

function hasDetail(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'detail' in error
}

/** A row, an entry or a view without the `detail` of its error. */
function withoutDetail<T extends { error?: unknown }>(value: T): T {
  if (!hasDetail(value.error)) return value
  const { detail: _, ...error } = value.error as { detail: unknown }
  return { ...value, error }
}

export const hideDetails: (row: RunRow) => RunRow = withoutDetail

/** The same of a view that is kept of a run: see `KeptRun`. */
export function hideViewDetails({ seq, view }: KeptView): KeptView {
  if (typeof view !== 'object' || view === null) return { seq, view }
  const { steps, ...rest } = view as { steps?: unknown; error?: unknown }
  const shown = Array.isArray(steps) && { steps: steps.map((step: object) => withoutDetail(step)) }
  return { seq, view: { ...withoutDetail(rest), ...shown } }
}

/** Wires must know which calls are for the client, and which of them are gated: a client may run every call that it gets. */
function asNamed({ name, client, approval }: ToolSpec): ToolSpec {
  return { name, inputSchema: {}, ...(client && { client }), ...(approval && { approval }) }
}

function withoutText(entry: Entry): Entry {
  switch (entry.type) {
    case 'run-start':
      return { ...entry, pipeline: '' }
    case 'step-start':
    case 'resume': {
      if (entry.pipeline === undefined) return entry
      const { pipeline: _, ...rest } = entry
      return rest
    }
    case 'prompt': {
      const { system: _system, settings: _settings, tools, ...rest } = entry
      const ofClient = tools?.filter(({ client }) => client === true).map(asNamed) ?? []
      return { ...rest, messages: [], ...(ofClient.length > 0 && { tools: ofClient }) }
    }
    case 'cli-output':
      return { ...entry, raw: '' }
    case 'warning':
      return internal.has(entry.code) ? { ...entry, message: unexplained } : entry
    default:
      return 'error' in entry ? withoutDetail(entry) : entry
  }
}
