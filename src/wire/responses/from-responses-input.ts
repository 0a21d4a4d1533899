/**
 * Converts the `input` of a Responses request to a conversation. The input is untrusted: every field that is read is checked, and errors name its
 * place. Names and ids are used only as Map keys, so they cannot reach a prototype.
 *
 * The items of an assistant between two others are one message. Outputs stand behind the message that made their calls, in the order of the calls,
 * wherever the client has them; a call without one is `unavailable`.
 */
import { MillraceError } from '../../part/error.ts'
import type {
  AssistantContent,
  FileContent,
  Message,
  TextContent,
  ToolCallContent,
  ToolResultContent,
} from '../../part/message.ts'
import { outcomeText } from '../../fold/open-items.ts'
import { parseInput } from '../../fold/tool-loop.ts'
import { toArray, toFields, toString, type Fields } from '../ui/ui-parts.ts'
import { BadParameter, splitPlace, toFile, toName } from '../openai/from-openai-messages.ts'
import type { SentInput } from '../sent-message.ts'
import { approvalPrefix } from './response-items.ts'
import { modelToolName } from './tool-names.ts'

/** A person's answer to a request of a run that waits. */
export interface SentApproval {
  requestId: string
  approved: boolean
  reason?: string
  place: string
}

export interface ResponsesInput extends SentInput {
  /** Those at the end of the input: others are part of the history. */
  approvals: SentApproval[]
}

const maxItems = 10_000
const maxReason = 10_000
/** Named at most, of what was left out. */
const mostIgnored = 20

/** Items that the server, or another one, has made. They are looked up by their ids. */
const recorded: ReadonlySet<unknown> = new Set([
  'item_reference',
  'mcp_call',
  'mcp_list_tools',
  'mcp_approval_request',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'computer_call',
  'reasoning',
])
const calls: ReadonlySet<unknown> = new Set(['function_call', 'custom_tool_call'])
const outputs: ReadonlySet<unknown> = new Set(['function_call_output', 'custom_tool_call_output'])
const roles: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system', 'developer'])

/** `runOf`: the run that a token of reasoning names. At most 10,000 items. Throws {@link BadParameter}. */
export function fromResponsesInput(
  value: unknown,
  runOf: (token: string) => string | undefined = () => undefined,
): ResponsesInput {
  if (typeof value === 'string') {
    return { messages: [{ message: { role: 'user', content: value } }], orphans: [], ignored: [], approvals: [] }
  }
  if (!Array.isArray(value)) throw new BadParameter('input', 'must be a string or an array of items.')
  if (value.length > maxItems) {
    throw new BadParameter('input', `has ${value.length} items; at most ${maxItems} are allowed.`)
  }
  try {
    return new InputReader(value as unknown[], runOf).read()
  } catch (error) {
    if (!(error instanceof MillraceError) || error instanceof BadParameter) throw error
    throw new BadParameter(...splitPlace(error.message))
  }
}

/** The tokens of reasoning in a request, which are opened before it is read. */
export function encryptedContents(value: unknown): Set<string> {
  const tokens = new Set<string>()
  for (const item of Array.isArray(value) ? (value as unknown[]) : []) {
    const { type, encrypted_content: token } = (item ?? {}) as Fields
    if (type === 'reasoning' && typeof token === 'string') tokens.add(token)
  }
  return tokens
}

interface Output {
  index: number
  item: Fields
  isTaken?: true
}

class InputReader {
  private readonly items: Fields[]
  private readonly runOf: (token: string) => string | undefined
  /** By the ids of their calls, in order: some servers count ids from 0 in each answer. */
  private readonly outputs = new Map<string, Output[]>()
  private readonly sent: ResponsesInput = { messages: [], orphans: [], ignored: [], approvals: [] }
  private content: AssistantContent[] = []
  private open: { call: ToolCallContent; index: number }[] = []
  private run: string | undefined = undefined
  private refers = false

  constructor(items: readonly unknown[], runOf: (token: string) => string | undefined) {
    this.runOf = runOf
    this.items = items.map((item, i) => toFields(item, placeOf(i)))
  }

  read(): ResponsesInput {
    for (const [index, item] of this.items.entries()) {
      if (!outputs.has(item['type'])) continue
      const id = toName(item['call_id'], `${placeOf(index)}.call_id`)
      const of = this.outputs.get(id) ?? []
      of.push({ index, item })
      this.outputs.set(id, of)
    }
    for (const [index, item] of this.items.entries()) this.readItem(item, index)
    this.endTurn()
    return this.sent
  }

  private readItem(item: Fields, index: number): void {
    const place = placeOf(index)
    const { type, role } = item
    if (type === 'message' || (type === undefined && role !== undefined)) return this.readMessage(item, place)
    if (calls.has(type)) {
      this.note(item)
      const call = toCall(item, place)
      this.open.push({ call, index })
      return void this.content.push(call)
    }
    if (outputs.has(type)) return this.readOutput(item, index)
    if (type === 'mcp_approval_response') return this.readApproval(item, place)
    if (recorded.has(type)) {
      this.refers = true
      return this.note(item)
    }
    if (typeof type !== 'string') throw new BadParameter(`${place}.type`, 'is missing.')
    if (this.sent.ignored.length < mostIgnored) this.sent.ignored.push(`${place} (${type.slice(0, 60)})`)
  }

  /** An item of the assistant names its run: by its token, which nobody can make up, or by its id. */
  private note({ id, type, encrypted_content: token }: Fields): void {
    this.run ??= (type === 'reasoning' && typeof token === 'string' ? this.runOf(token) : undefined) ?? runOfItem(id)
  }

  private readMessage(item: Fields, place: string): void {
    const { role, content } = item
    if (!roles.has(role)) {
      throw new BadParameter(`${place}.role`, 'must be one of user, assistant, system, developer.')
    }
    if (role === 'assistant') {
      this.note(item)
      const { phase } = item
      const text = toText(content, `${place}.content`)
      const kept =
        typeof phase === 'string' ? { providerOptions: { openai: { phase: phase.slice(0, 64) } } } : undefined
      if (text !== '') this.content.push({ type: 'text', text, ...kept })
      return
    }
    this.endTurn()
    if (role === 'user') this.add({ role, content: toUserContent(content, `${place}.content`) })
    else this.add({ role: 'system', content: toText(content, `${place}.content`) })
  }

  private add(message: Message): void {
    this.sent.approvals = []
    this.sent.messages.push({ message })
  }

  private readApproval(item: Fields, place: string): void {
    this.endTurn()
    const { approval_request_id: id, approve, reason } = item
    const name = toString(id, `${place}.approval_request_id`)
    if (typeof approve !== 'boolean') throw new BadParameter(`${place}.approve`, 'must be true or false.')
    // Another server's, in the history.
    if (!name.startsWith(approvalPrefix)) return
    this.sent.approvals.push({
      requestId: name.slice(approvalPrefix.length),
      approved: approve,
      place: `${place}.approval_request_id`,
      ...(typeof reason === 'string' && reason !== '' && { reason: reason.slice(0, maxReason) }),
    })
  }

  /** An output whose call is not before it belongs to the run before, if that has made it. */
  private readOutput(item: Fields, index: number): void {
    this.endTurn()
    const toolCallId = item['call_id'] as string
    const own = this.outputs.get(toolCallId)!.find((each) => each.index === index)!
    if (own.isTaken) return
    this.sent.orphans.push({ toolCallId, place: `${placeOf(index)}.call_id` })
    this.addResults([toResult({ toolCallId, toolName: '' }, item, placeOf(index))])
  }

  private addResults(results: { result: ToolResultContent; files: FileContent[] }[]): void {
    const content = results.map(({ result }) => result)
    const last = this.sent.messages.at(-1)?.message
    // They may stand behind answers to approvals.
    if (last?.role === 'tool') last.content.push(...content)
    else this.sent.messages.push({ message: { role: 'tool', content } })
    // Models take files from users alone.
    const files = results.flatMap((each) => each.files)
    if (files.length > 0) this.add({ role: 'user', content: files })
  }

  /** The assistant's message is complete: its results follow. */
  private endTurn(): void {
    const { content, run, open, refers } = this
    this.content = []
    this.open = []
    this.run = undefined
    this.refers = false
    if (content.length === 0) {
      if (!refers || run === undefined) return
      this.sent.approvals = []
      return void this.sent.messages.push({ message: { role: 'assistant', content: [] }, run, isReference: true })
    }
    const message: Message = { role: 'assistant', content }
    this.sent.approvals = []
    this.sent.messages.push(run === undefined ? { message } : { message, run })
    if (open.length === 0) return
    this.addResults(
      open.map(({ call, index }) => {
        const output = this.outputs.get(call.toolCallId)?.find((each) => each.index > index && !each.isTaken)
        if (output === undefined) return { result: unavailable(call), files: [] }
        output.isTaken = true
        return toResult(call, output.item, placeOf(output.index))
      }),
    )
  }
}

/** The run in the id of an item: `msg_<run>_<n>`. The id is the client's. */
export function runOfItem(id: unknown): string | undefined {
  if (typeof id !== 'string' || id.length > 512) return undefined
  return /^(?:msg|fc|ctc|rs|mcp)_(.+)_\d+$/u.exec(id)?.[1]
}

function placeOf(index: number): string {
  return `input[${index}]`
}

function toCall(item: Fields, place: string): ToolCallContent {
  const name = toName(item['name'], `${place}.name`)
  const isText = item['type'] === 'custom_tool_call'
  const input = isText
    ? { input: toString(item['input'], `${place}.input`) }
    : parseInput(item['arguments'] === undefined ? '' : toString(item['arguments'], `${place}.arguments`))
  return {
    type: 'tool-call',
    toolCallId: toName(item['call_id'], `${place}.call_id`),
    toolName: modelToolName(name, item['namespace']),
    input,
  }
}

type Named = Pick<ToolCallContent, 'toolCallId' | 'toolName'>

function toResult(
  { toolCallId, toolName }: Named,
  item: Fields,
  place: string,
): { result: ToolResultContent; files: FileContent[] } {
  const { output } = item
  const files: FileContent[] = []
  let value = ''
  if (typeof output === 'string') value = output
  else {
    for (const part of toParts(output, `${place}.output`)) {
      if (typeof part === 'string') value += part
      else files.push(part)
    }
    if (value === '' && files.length > 0) value = 'The output is in the files that follow.'
  }
  return { result: { type: 'tool-result', toolCallId, toolName, output: { type: 'text', value } }, files }
}

function unavailable({ toolCallId, toolName }: Named): ToolResultContent {
  return { type: 'tool-result', toolCallId, toolName, output: { type: 'error-text', value: outcomeText.unavailable } }
}

function toText(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  return toParts(value, place)
    .map((part) => {
      if (typeof part !== 'string') throw new BadParameter(place, 'must be text.')
      return part
    })
    .join('')
}

function toUserContent(value: unknown, place: string): string | (TextContent | FileContent)[] {
  if (typeof value === 'string') return value
  const parts = toParts(value, place)
  if (parts.length === 0) throw new BadParameter(place, 'is empty.')
  return parts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part))
}

/** Texts and files. */
function toParts(value: unknown, place: string): (string | FileContent)[] {
  if (!Array.isArray(value)) throw new BadParameter(place, 'must be a string or an array of content parts.')
  return toArray(value, place).map((each, i) => {
    const at = `${place}[${i}]`
    const part = toFields(each, at)
    switch (part['type']) {
      case 'input_text':
      case 'output_text':
      case 'text':
        return toString(part['text'], `${at}.text`)
      case 'refusal':
        return toString(part['refusal'], `${at}.refusal`)
      case 'input_image':
        refuseUpload(part, at)
        return toFile(toString(part['image_url'], `${at}.image_url`), `${at}.image_url`, 'image/*')
      case 'input_file': {
        refuseUpload(part, at)
        const key = part['file_url'] == null ? 'file_data' : 'file_url'
        const made = toFile(toString(part[key], `${at}.${key}`), `${at}.${key}`, 'application/octet-stream')
        const { filename } = part
        return typeof filename === 'string' ? { ...made, filename: filename.slice(0, 256) } : made
      }
      default:
        throw new BadParameter(`${at}.type`, 'must be input_text, output_text, refusal, input_image or input_file.')
    }
  })
}

/** Files are in the request, because there is nowhere to upload them. */
function refuseUpload(part: Fields, at: string): void {
  if (part['file_id'] == null) return
  throw new BadParameter(`${at}.file_id`, 'is not supported: send the file as a data: URL or with its https address.')
}
