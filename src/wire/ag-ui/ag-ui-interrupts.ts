/** What only a person can answer, as interrupts: approvals, and questions of a step. */
import type { Interrupt } from '@ag-ui/core'
import { LateMap } from '../../fold/late-map.ts'
import { compact } from '../../part/compact.ts'
import type { EntryOf } from '../../part/entry.ts'
import { isUnder } from '../../part/path.ts'

export interface AgUiInterrupts {
  /** `toolCallId`: the id by which the client knows the call. */
  request(entry: EntryOf<'request'>, toolCallId?: string): void
  response(entry: EntryOf<'response'>): void
  /** The open ones. */
  pending(): Interrupt[]
  forget(path: string): void
}

/** What answers an approval. */
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
  const open = new LateMap<string, { path: string; interrupt: Interrupt }>()
  return {
    request(entry, toolCallId) {
      if (entry.kind === 'tool') return
      open.set(entry.requestId, { path: entry.step, interrupt: toInterrupt(entry, toolCallId) })
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

function toInterrupt(entry: EntryOf<'request'>, toolCallId: string | undefined): Interrupt {
  const { requestId: id, deadline } = entry
  const expiresAt = Number.isFinite(deadline) && deadline > 0 ? toIso(deadline) : undefined
  if (entry.kind === 'input') {
    const { reason = 'input_required', message, schema: responseSchema, metadata } = entry
    return compact({ id, reason, message, responseSchema, expiresAt, metadata })
  }
  const { toolName, input } = entry
  const message = `The tool ${toolName} needs an approval.`
  // The client may not know the call: it sees those of its own tools once they are approved.
  const metadata = { toolName, input }
  return compact({ id, reason: 'tool_call', message, toolCallId, responseSchema: approvalSchema, expiresAt, metadata })
}

function toIso(time: number): string | undefined {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString()
}
