/** Reads an AG-UI client's replies: the results of its tools in `messages`, and `resume[]`. */
import type { Reply, RequestPart } from '../../part/request-part.ts'
import { bad, toArray, toFields, toString, type Fields } from '../ui/ui-parts.ts'
import { toCallId } from './ag-ui-ids.ts'
import { toMessages, toOutput } from './from-ag-ui-messages.ts'

/** The results of calls in `tool` messages after the last user message. The server matches them with open requests. */
export function toolResults(messages: unknown): { toolCallId: string; answer: Reply }[] {
  const list = toMessages(messages)
  const from = list.findLastIndex(({ role }) => role === 'user') + 1
  const newest = newestCalls(list.slice(from))
  // If results share an id, the last counts.
  const answers = new Map<string, Reply>()
  for (let i = from; i < list.length; i++) {
    const message = list[i]!
    if (message.role !== 'tool') continue
    const place = `messages[${i}]`
    const name = toString(message['toolCallId'], `${place}.toolCallId`)
    const id = toCallId(name)
    if ((newest.get(id) ?? name) === name) answers.set(id, toToolAnswer(message, place))
  }
  return [...answers].map(([toolCallId, answer]) => ({ toolCallId, answer }))
}

/** If calls share an id, only the last can be open. */
function newestCalls(list: readonly Fields[]): Map<string, string> {
  const names = new Map<string, string>()
  for (const { toolCalls } of list) {
    if (!Array.isArray(toolCalls)) continue
    for (const call of toolCalls as { id?: unknown }[]) {
      if (typeof call?.id === 'string') names.set(toCallId(call.id), call.id)
    }
  }
  return names
}

/** The reply in one `tool` message, also on its own. */
export function toToolAnswer(message: Fields, place: string): Reply {
  const output = toOutput(message, place)
  if (output.type === 'execution-denied') return { kind: 'approval', approved: false }
  const isError = output.type === 'error-text' || output.type === 'error-json'
  return { kind: 'tool', output: output.value, ...(isError && { isError }) }
}

/** An entry of `resume[]`: the reply to the request with this id, of any kind. */
export interface Resumed {
  requestId: string
  isCancelled: boolean
  /** Throws `bad-input` for a payload that does not fit a request of this kind. */
  answer(kind: RequestPart['kind']): Reply
}

export function readResume(value: unknown): Resumed[] {
  if (value === undefined || value === null) return []
  const entries = new Map<string, Resumed>()
  for (const [i, item] of toArray(value, 'resume').entries()) {
    const place = `resume[${i}]`
    const entry = toFields(item, place)
    const requestId = toString(entry['interruptId'], `${place}.interruptId`)
    const { status } = entry
    if (status !== 'resolved' && status !== 'cancelled') throw bad(`${place}.status`, 'must be resolved or cancelled.')
    if (entries.has(requestId)) throw bad(`${place}.interruptId`, 'is that of another entry, too: answer each once.')
    const isCancelled = status === 'cancelled'
    const answer: Resumed['answer'] = (kind) =>
      isCancelled ? cancelled(kind, entry['payload']) : resolved(kind, entry['payload'], `${place}.payload`)
    entries.set(requestId, { requestId, isCancelled, answer })
  }
  return [...entries.values()]
}

function cancelled(kind: RequestPart['kind'], payload: unknown): Reply {
  switch (kind) {
    case 'approval':
      return { kind, approved: false, reason: 'cancelled' }
    case 'input':
      return { kind, cancelled: true, ...(isDecline(payload) && { declined: true }) }
    case 'tool':
      return { kind, output: 'The tool call was cancelled.', isError: true }
  }
}

/** A person says no, instead of closing the question. */
function isDecline(payload: unknown): boolean {
  return typeof payload === 'object' && payload !== null && 'declined' in payload && payload.declined === true
}

function resolved(kind: RequestPart['kind'], payload: unknown, place: string): Reply {
  switch (kind) {
    case 'approval': {
      // Some clients send the decision itself.
      if (typeof payload === 'boolean') return { kind, approved: payload }
      const { approved, reason, editedArgs } = toFields(payload, place)
      if (typeof approved !== 'boolean') throw bad(`${place}.approved`, 'must be true or false.')
      const said = reason === undefined ? undefined : { reason: toString(reason, `${place}.reason`) }
      const edited =
        editedArgs == null || !approved ? undefined : { input: toFields(editedArgs, `${place}.editedArgs`) }
      return { kind, approved, ...said, ...edited }
    }
    case 'input':
      return { kind, value: payload ?? null }
    case 'tool':
      return { kind, output: payload ?? null }
  }
}
