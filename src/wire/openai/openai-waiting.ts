/**
 * Approvals that an answer leaves open. The protocol has no field for them, and its clients show text to people, so the answer ends with
 * words that name the open requests and how to answer. Their last line names the run and the requests: the client sends it back with
 * the conversation, and {@link readWaiting} finds the run by it.
 */
import { clientThread } from '../../part/principal.ts'
import type { Entry, EntryOf } from '../../part/entry.ts'
import { messageOf } from '../../part/error.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import { toOpenAiCallId } from '../../part/openai-call-id.ts'
import { hasRole } from '../../part/principal.ts'
import { kindOf } from '../../part/step-kind.ts'
import { chainWords, createAgentsAbove } from '../../fold/agents-above.ts'
import { LazyMap, LazySet } from '../../fold/lazy-map.ts'
import type { WireContext } from '../wire.ts'
import type { DeniedCall, OpenAiAside } from './openai-output.ts'

type Approval = Extract<EntryOf<'request'>, { toolCallId: string }> & { agents?: string[] }

/** Most UTF-16 units of the arguments that people are shown. */
const shownArguments = 200

/** A call that waits for the reader's approval. `agent`: whose call it is. */
export interface OfferedApproval {
  requestId: string
  step: string
  agent: string
  toolName: string
  input: unknown
}

export interface OpenAiWaiting {
  apply(entry: Entry): void
  request(requestId: string): EntryOf<'request'> | undefined
  /** Whether every open request is an approval of a run that hands over its client's calls, so that this client can be told. */
  readonly isTold: boolean
  /** The calls that the reader may approve. */
  offered(): OfferedApproval[]
  /** For people; empty if nothing waits and nothing was denied. */
  words(): string
  /** For programs. */
  aside(): OpenAiAside | undefined
}

/** `textOnly`: the protocol has no conversation that could be continued. `roles`: the reader's. */
export function createOpenAiWaiting(textOnly: boolean, roles: WireContext['roles']): OpenAiWaiting {
  return new Waits(textOnly, roles)
}

/** A class, because each answer has one, and most wait for nothing. */
class Waits implements OpenAiWaiting {
  readonly #textOnly: boolean
  readonly #roles: WireContext['roles']
  readonly #open = new LazyMap<string, EntryOf<'request'> & { agents?: string[] }>()
  readonly #above = createAgentsAbove()
  /** Approval steps in which nobody was asked. */
  readonly #silent = new LazySet<string>()
  #denied: DeniedCall[] | undefined = undefined
  #start: EntryOf<'run-start'> | undefined = undefined

  constructor(textOnly: boolean, roles: WireContext['roles']) {
    this.#textOnly = textOnly
    this.#roles = roles
  }

  apply(entry: Entry): void {
    this.#above.apply(entry)
    switch (entry.type) {
      case 'run-start':
        this.#start = entry
        break
      case 'step-start':
        if (kindOf(entry) === 'approval') this.#silent.add(entry.step)
        break
      case 'request':
        this.#open.set(entry.requestId, { ...entry, ...this.#above.field(entry.step) })
        this.#silent.delete(entry.step)
        break
      case 'response':
        this.#open.delete(entry.requestId)
        break
      case 'tool-result': {
        const { step, toolCallId, toolName, outcome, result } = entry
        if (outcome === 'denied' && this.#silent.has(step)) {
          const call = { toolCallId: toOpenAiCallId(toolCallId), toolName, reason: messageOf(result) }
          ;(this.#denied ??= []).push(call)
        }
        break
      }
      default:
    }
  }

  #approvals(): Approval[] {
    return [...this.#open.values()].filter((request): request is Approval => request.kind === 'approval')
  }

  request(requestId: string): EntryOf<'request'> | undefined {
    return this.#open.get(requestId)
  }

  get isTold(): boolean {
    return this.#start?.handOver === true && this.#open.size > 0 && this.#approvals().length === this.#open.size
  }

  offered(): OfferedApproval[] {
    const { agent } = this.#start ?? { agent: '' }
    return this.#approvals().flatMap(({ requestId, step, toolName, input, agents, roles }) => {
      return hasRole(this.#roles, roles) ? [{ requestId, step, toolName, input, agent: agents?.at(-1) ?? agent }] : []
    })
  }

  words(): string {
    const requests = this.#approvals()
    if (this.#start === undefined) return ''
    const lines = (this.#denied ?? []).map(({ toolName, reason }) => `${toolName}: ${reason}`)
    if (requests.length > 0) {
      const isOffered = ({ roles }: Approval) => hasRole(this.#roles, roles)
      lines.push(waitingWords(this.#start.runId, { requests, isOffered, textOnly: this.#textOnly }))
    }
    return lines.join('\n')
  }

  aside(): OpenAiAside | undefined {
    const requests = this.#approvals()
    const denied = this.#denied ?? []
    if (this.#start === undefined || (requests.length === 0 && denied.length === 0)) return undefined
    const { runId } = this.#start
    const threadId = clientThread(this.#start)
    const [offered, others] = [true, false].map((is) =>
      requests.filter(({ roles }) => hasRole(this.#roles, roles) === is),
    ) as [Approval[], Approval[]]
    const waiting = others.map(({ toolCallId, toolName, roles = [], agents }) => {
      return { toolCallId: toOpenAiCallId(toolCallId), toolName, roles, ...omitUndefined({ agents }) }
    })
    const bodies = offered.map(({ requestId, kind, toolCallId, toolName, input, deadline, agents }) => {
      const call = { toolCallId: toOpenAiCallId(toolCallId), toolName, input }
      return { requestId, kind, ...call, deadline, ...omitUndefined({ agents }) }
    })
    return {
      runId,
      threadId,
      ...(bodies.length > 0 && { requests: bodies }),
      ...(waiting.length > 0 && { waiting }),
      ...(denied.length > 0 && { denied }),
    }
  }
}

interface WaitingWords {
  requests: readonly Approval[]
  /** Whether the reader may answer. */
  isOffered(request: Approval): boolean
  textOnly: boolean
}

function waitingWords(runId: string, { requests, isOffered, textOnly }: WaitingWords): string {
  const offered = requests.filter(isOffered)
  const others = requests.filter((request) => !isOffered(request))
  const call = ({ toolName, input, agents }: Approval) => {
    const chain = agents === undefined ? '' : ` (${chainWords(agents)})`
    return `${toolName}(${shorten(JSON.stringify(input) ?? '')})${chain}`
  }
  const lines: string[] = []
  if (offered.length > 0) {
    const route = ({ requestId }: Approval) => `POST /api/runs/${runId}/requests/${requestId}`
    lines.push(
      offered.length === 1
        ? 'This call waits for approval and has not run:'
        : 'These calls wait for approval and have not run:',
      ...offered.map((each) => `- ${call(each)}: ${route(each)} with {"approved": true} or {"approved": false}`),
      `Or run: millrace answer ${runId}`,
    )
  }
  if (others.length > 0) {
    lines.push(
      others.length === 1
        ? 'This call waits for somebody else to approve it and has not run:'
        : 'These calls wait for somebody else to approve them and have not run:',
      ...others.map((each) => `- ${call(each)}: ${(each.roles ?? []).join(' or ') || 'admin'}`),
    )
  }
  const first = others.length === 0 ? 'Answer first. Then' : 'When all are answered,'
  return [
    ...lines,
    textOnly
      ? `The rest of the answer is then at GET /api/runs/${runId}`
      : `${first} continue this conversation to get the rest; a new message before that closes the call, and it never runs.`,
    `[run ${runId} waits for ${requests.map(({ requestId }) => requestId).join(', ')}]`,
  ].join('\n')
}

function shorten(json: string): string {
  if (json.length <= shownArguments) return json
  const last = json.charCodeAt(shownArguments - 1)
  const cut = last >= 0xd800 && last <= 0xdbff ? shownArguments - 1 : shownArguments
  return `${json.slice(0, cut)}…`
}

export interface Waiting {
  runId: string
  requests: string[]
}

/** The run and the requests that the words at the end of an assistant's message name. The text is a client's: the run may be another's, or none. */
export function readWaiting(text: string): Waiting | undefined {
  const found = /\[run (\S{1,256}) waits for (\S[^\]\n]{0,100000})\]\s*$/u.exec(text)
  return found === null ? undefined : { runId: found[1]!, requests: found[2]!.split(', ') }
}
