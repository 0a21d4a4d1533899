/** Requests to persons, as interrupts: approvals, and questions of a step. */
import type { Interrupt } from '@ag-ui/core'
import { chainWords } from '../../fold/agents-above.ts'
import { LazyMap } from '../../fold/lazy-map.ts'
import type { EntryOf } from '../../part/entry.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { isUnder } from '../../part/path.ts'

export interface AgUiInterrupts {
  request(entry: EntryOf<'request'>, about: InterruptPlace): void
  response(entry: EntryOf<'response'>): void
  /** The open interrupts. */
  pending(): Interrupt[]
  forget(path: string): void
}

interface InterruptPlace {
  /** The client's id of the call. */
  toolCallId?: string | undefined
  agents?: string[]
  subagentRunId: string | undefined
}

/** The schema of a reply to an approval. */
const approvalSchema = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    reason: { type: 'string' },
    editedArgs: { type: 'object', description: 'Other arguments for the tool, if it is approved.' },
  },
  required: ['approved'],
}

export function createAgUiInterrupts(): AgUiInterrupts {
  const open = new LazyMap<string, { path: string; interrupt: Interrupt }>()
  return {
    request(entry, place) {
      if (entry.kind === 'tool') return
      open.set(entry.requestId, { path: entry.step, interrupt: toInterrupt(entry, place) })
    },
    response({ requestId }) {
      open.delete(requestId)
    },
    pending: () => Array.from(open.values(), ({ interrupt }) => interrupt),
    forget(root) {
      for (const [id, { path }] of open) if (isUnder(path, root)) open.delete(id)
    },
  }
}

function toInterrupt(entry: EntryOf<'request'>, { toolCallId, agents, subagentRunId }: InterruptPlace): Interrupt {
  const { requestId: id, deadline } = entry
  const expiresAt = Number.isFinite(deadline) && deadline > 0 ? toIso(deadline) : undefined
  if (entry.kind === 'input') {
    const { reason = 'input_required', message, schema: responseSchema } = entry
    const metadata = agents === undefined ? entry.metadata : { ...entry.metadata, agents }
    return omitUndefined({ id, reason, message, responseSchema, expiresAt, metadata, subagentRunId })
  }
  const { toolName, input } = entry
  const message = `The tool ${toolName} needs an approval${agents === undefined ? '' : ` (${chainWords(agents)})`}.`
  // The client may not have the call: it gets those of its own tools only after approval.
  const metadata = omitUndefined({ toolName, input, agents })
  return omitUndefined({
    id,
    reason: 'tool_call',
    message,
    toolCallId,
    responseSchema: approvalSchema,
    expiresAt,
    metadata,
    subagentRunId,
  })
}

function toIso(time: number): string | undefined {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
