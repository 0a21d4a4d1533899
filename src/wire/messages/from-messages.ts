/**
 * Converts the `messages` of a Messages request to a conversation. They are untrusted: every field that is read is checked, and errors name its place.
 * Names and ids are used only as Map keys, so they cannot reach a prototype.
 *
 * A user's message has the results of the calls before it. They stand behind the message that made the calls, in the order of the calls; a call without
 * a result is `unavailable`. A block of a type that is not known is left out and named: a refusal costs some clients several more requests.
 */
import { MillraceError } from '../../part/error.ts'
import { base64Fault, withPlace } from '../../part/data-url.ts'
import { outcomeText } from '../../fold/open-items.ts'
import type {
  AssistantContent,
  FileContent,
  Message,
  TextContent,
  ToolCallContent,
  ToolOutput,
  ToolResultContent,
} from '../../part/message.ts'
import { BadParameter, splitPlace, toFile, toName } from '../openai/from-openai-messages.ts'
import type { SentInput } from '../sent-message.ts'
import { toFields, toString, type Fields } from '../ui/ui-parts.ts'
import { emptyAnswer } from './messages-answer.ts'
import { fromToolUseId } from './tool-use-id.ts'

export interface SentMessages extends SentInput {
  /** Tools that results name (`tool_reference`): they are offered from then on. */
  referenced: ReadonlySet<string>
}

const maxItems = 10_000
/** Named at most, of what was left out. */
const mostIgnored = 20
const roles: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system'])

/** `runOf`: the run that a token of reasoning names. At most 10,000 blocks. Throws {@link BadParameter}. */
export function fromMessages(value: unknown, runOf: (token: string) => string | undefined): SentMessages {
  if (!Array.isArray(value)) throw new BadParameter('messages', 'must be an array of {role, content}.')
  if (value.length === 0) throw new BadParameter('messages', 'is empty.')
  try {
    return new MessagesReader(runOf).read(value as unknown[])
  } catch (error) {
    if (!(error instanceof MillraceError) || error instanceof BadParameter) throw error
    throw new BadParameter(...splitPlace(error.message))
  }
}

/** The tokens of reasoning in a request, which are opened before it is read. */
export function reasoningTokens(value: unknown): Set<string> {
  const tokens = new Set<string>()
  for (const message of listOf(value)) {
    for (const block of listOf(fieldsOf(message)['content'])) {
      const { type, signature, data } = fieldsOf(block)
      const token = type === 'thinking' ? signature : type === 'redacted_thinking' ? data : undefined
      if (typeof token === 'string') tokens.add(token)
    }
  }
  return tokens
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : []
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

interface Result {
  toolCallId: string
  place: string
  output: ToolOutput
  files: FileContent[]
}

class MessagesReader {
  private readonly runOf: (token: string) => string | undefined
  private readonly referenced = new Set<string>()
  private readonly sent: SentMessages = { messages: [], orphans: [], ignored: [], referenced: this.referenced }
  private items = 0
  private content: AssistantContent[] = []
  private open: ToolCallContent[] = []
  private run: string | undefined = undefined
  private refers = false
  /** Between calls and their results. */
  private held: Message[] = []

  constructor(runOf: (token: string) => string | undefined) {
    this.runOf = runOf
  }

  read(messages: readonly unknown[]): SentMessages {
    for (const [i, each] of messages.entries()) {
      const place = `messages[${i}]`
      const { role, content } = toFields(each, place)
      if (!roles.has(role)) throw new BadParameter(`${place}.role`, 'must be one of user, assistant, system.')
      const blocks = this.blocksOf(content, `${place}.content`)
      if (role === 'assistant') for (const [at, block] of blocks) this.readAssistant(block, at)
      else if (role === 'user') this.readUser(blocks, place)
      else this.readSystem(blocks)
    }
    this.endTurn([])
    return this.sent
  }

  /** With their places. */
  private blocksOf(content: unknown, place: string): [place: string, block: Fields][] {
    const blocks: unknown[] =
      typeof content === 'string' ? [{ type: 'text', text: content }] : Array.isArray(content) ? (content as []) : []
    if (typeof content !== 'string' && !Array.isArray(content)) {
      throw new BadParameter(place, 'must be a string or an array of content blocks.')
    }
    this.items += blocks.length
    if (this.items > maxItems) throw new BadParameter('messages', `has more than ${maxItems} content blocks.`)
    return blocks.map((block, n) => {
      const at = typeof content === 'string' ? place : `${place}[${n}]`
      const fields = toFields(block, at)
      if (typeof fields['type'] !== 'string') throw new BadParameter(`${at}.type`, 'is missing.')
      return [at, fields]
    })
  }

  private ignore(place: string, { type }: Fields): void {
    if (this.sent.ignored.length < mostIgnored) this.sent.ignored.push(`${place} (${String(type).slice(0, 60)})`)
  }

  private readAssistant(block: Fields, place: string): void {
    switch (block['type']) {
      case 'text': {
        const text = toString(block['text'], `${place}.text`)
        if (text !== '' && text !== emptyAnswer) this.content.push({ type: 'text', text })
        return
      }
      case 'tool_use': {
        const toolCallId = fromToolUseId(toName(block['id'], `${place}.id`))
        const toolName = toName(block['name'], `${place}.name`)
        const call: ToolCallContent = {
          type: 'tool-call',
          toolCallId,
          toolName,
          input: toFields(block['input'] ?? {}, `${place}.input`),
        }
        this.open.push(call)
        return void this.content.push(call)
      }
      case 'thinking':
      case 'redacted_thinking': {
        // Only the log has what its provider signed.
        const token = block[block['type'] === 'thinking' ? 'signature' : 'data']
        return this.refer(typeof token === 'string' ? this.runOf(token) : undefined)
      }
      case 'mcp_tool_use':
      case 'server_tool_use':
        return this.refer(runOfBlock(block['id']))
      default:
        if (!String(block['type']).endsWith('_tool_result')) return this.ignore(place, block)
        return this.refer(runOfBlock(block['tool_use_id']))
    }
  }

  /** A block of the assistant names its run. */
  private refer(run: string | undefined): void {
    this.refers = true
    this.run ??= run
  }

  private readSystem(blocks: [string, Fields][]): void {
    const content = systemText(blocks)
    // Results come before it.
    if (this.open.length === 0) this.endTurn([])
    if (content !== '') this.held.push({ role: 'system', content })
    if (this.open.length === 0) this.release()
  }

  private readUser(blocks: [string, Fields][], place: string): void {
    const results: Result[] = []
    const content: (TextContent | FileContent)[] = []
    for (const [at, block] of blocks) {
      if (block['type'] === 'tool_result') results.push(this.toResult(block, at))
      else content.push(...this.toContent(block, at))
    }
    this.endTurn(results)
    // Models take files from users alone.
    const all = [...results.flatMap(({ files }) => files), ...content]
    if (all.length > 0) this.add({ role: 'user', content: all })
    else if (blocks.length === 0) throw new BadParameter(`${place}.content`, 'is empty.')
  }

  private add(message: Message): void {
    this.sent.messages.push({ message })
  }

  /** The assistant's message is complete: its results follow. */
  private endTurn(results: readonly Result[]): void {
    const { content, open, run, refers } = this
    this.content = []
    this.open = []
    this.run = undefined
    this.refers = false
    if (content.length > 0) {
      const message: Message = { role: 'assistant', content }
      this.sent.messages.push(run === undefined ? { message } : { message, run })
    } else if (refers && run !== undefined) {
      this.sent.messages.push({ message: { role: 'assistant', content: [] }, run, isReference: true })
    }
    const rest = [...results]
    const own = open.map(({ toolCallId, toolName }): ToolResultContent => {
      const at = rest.findIndex((each) => each.toolCallId === toolCallId)
      const output = at < 0 ? missing : rest.splice(at, 1)[0]!.output
      return { type: 'tool-result', toolCallId, toolName, output }
    })
    // Calls that are not before it belong to the run before, if that has made them.
    for (const { toolCallId, place, output } of rest) {
      this.sent.orphans.push({ toolCallId, place: `${place}.tool_use_id` })
      own.push({ type: 'tool-result', toolCallId, toolName: '', output })
    }
    if (own.length > 0) this.add({ role: 'tool', content: own })
    this.release()
  }

  private release(): void {
    for (const message of this.held) this.add(message)
    this.held = []
  }

  private toResult(block: Fields, place: string): Result {
    const { content, is_error: isError } = block
    const toolCallId = fromToolUseId(toName(block['tool_use_id'], `${place}.tool_use_id`))
    const files: FileContent[] = []
    const texts: string[] = []
    if (content != null) {
      for (const [at, each] of this.blocksOf(content, `${place}.content`)) {
        if (each['type'] === 'tool_reference') {
          const name = toName(each['tool_name'], `${at}.tool_name`)
          this.referenced.add(name)
          texts.push(`The tool ${name} can be used now.`)
          continue
        }
        for (const part of this.toContent(each, at)) {
          if (part.type === 'text') texts.push(part.text)
          else files.push(part)
        }
      }
    }
    const said = texts.join('\n')
    const value = said === '' && files.length > 0 ? 'The output is in the files that follow.' : said
    return { toolCallId, place, output: { type: isError === true ? 'error-text' : 'text', value }, files }
  }

  private toContent(block: Fields, place: string): (TextContent | FileContent)[] {
    switch (block['type']) {
      case 'text': {
        const text = toString(block['text'], `${place}.text`)
        return text === '' ? [] : [{ type: 'text', text }]
      }
      case 'image':
        return [toSource(toFields(block['source'], `${place}.source`), `${place}.source`, 'image/*')]
      case 'document': {
        const at = `${place}.source`
        const source = toFields(block['source'], at)
        const { title } = block
        const named = typeof title === 'string' && title !== '' ? title.slice(0, 256) : undefined
        if (source['type'] === 'text' || source['type'] === 'content') {
          const said =
            source['type'] === 'text'
              ? toString(source['data'], `${at}.data`)
              : systemText(this.blocksOf(source['content'], `${at}.content`))
          return [{ type: 'text', text: named === undefined ? said : `${named}\n\n${said}` }]
        }
        const file = toSource(source, at, 'application/pdf')
        return [named === undefined ? file : { ...file, filename: named }]
      }
      case 'search_result': {
        const { title, source } = block
        const said = systemText(this.blocksOf(block['content'], `${place}.content`))
        return [{ type: 'text', text: [title, source, said].filter((each) => typeof each === 'string').join('\n') }]
      }
      default:
        this.ignore(place, block)
        return []
    }
  }
}

const missing: ToolOutput = { type: 'error-text', value: outcomeText.unavailable }

/** The texts of blocks that are read as one. */
export function systemText(blocks: readonly (readonly [place: string, block: Fields])[]): string {
  return blocks
    .flatMap(([place, block]) => (block['type'] === 'text' ? [toString(block['text'], `${place}.text`)] : []))
    .filter((text) => text !== '')
    .join('\n\n')
}

/** The run in the id of a block: `mcptoolu_<run>_<n>`. The id is the client's. */
function runOfBlock(id: unknown): string | undefined {
  if (typeof id !== 'string' || id.length > 512) return undefined
  return /^mcptoolu_(.+)_\d+$/u.exec(id)?.[1]
}

function toSource(source: Fields, place: string, otherwise: string): FileContent {
  switch (source['type']) {
    case 'base64': {
      const data = toString(source['data'], `${place}.data`)
      const mediaType = toString(source['media_type'], `${place}.media_type`)
      if (!/^[\w.+-]+\/[\w.+-]+$/u.test(mediaType))
        throw new BadParameter(`${place}.media_type`, 'must be a media type.')
      const fault = base64Fault(data)
      if (fault !== undefined) throw new BadParameter(`${place}.data`, fault)
      return withPlace({ type: 'file', mediaType, data }, `${place}.data`)
    }
    case 'url':
      return toFile(toString(source['url'], `${place}.url`), `${place}.url`, otherwise)
    case 'file':
      throw new BadParameter(`${place}.file_id`, 'is not supported: send the file as base64 or with its https address.')
    default:
      throw new BadParameter(`${place}.type`, 'must be base64 or url.')
  }
}
