/** Reads a `RunAgentInput` of AG-UI, 1.0 or older. The input is untrusted: every field is checked, and errors name its place. */
import { MillraceError } from '../../part/error.ts'
import type { Message } from '../../part/message.ts'
import type { AgUiMessage } from '../../wire/ag-ui/ag-ui-event.ts'
import { fromAgUiMessages } from '../../wire/ag-ui/from-ag-ui-messages.ts'
import { readResume, toolResults, type Resumed } from '../../wire/ag-ui/ag-ui-answers.ts'
import { bad, toArray, toFields, toString, type Fields } from '../../wire/ui/ui-parts.ts'
import { optionalText } from '../http/body.ts'

export interface AgUiRequest {
  threadId: string
  /** The client's name for what this request begins. */
  runId: string
  parentRunId?: string
  /** The client is older than 1.0. */
  old: boolean
  messages: Message[]
  /** The messages as the client has them, if each has an id. */
  shown: AgUiMessage[] | undefined
  results: ReturnType<typeof toolResults>
  resume: Resumed[]
  /** `$input`, besides the messages. */
  input: Record<string, unknown>
  /** `forwardedProps.mcpHeaders`, which is neither input nor stored. */
  mcpHeaders: unknown
}

const maxTools = 128

/** Throws `bad-input` (400). */
export function readRunInput(body: Fields): AgUiRequest {
  const messages = fromAgUiMessages(body['messages'])
  const parentRunId = optionalText(body, 'parentRunId')
  const { mcpHeaders, ...forwardedProps } = readProps(body['forwardedProps'])
  const state = body['state'] ?? undefined
  return {
    threadId: requiredText(body, 'threadId'),
    runId: requiredText(body, 'runId'),
    ...(parentRunId !== undefined && { parentRunId }),
    old: optionalText(body, 'protocolVersion') === undefined,
    messages,
    shown: toShown(body['messages']),
    results: toolResults(body['messages']),
    resume: readResume(body['resume']),
    input: {
      tools: readTools(body['tools'] ?? []),
      context: readContext(body['context'] ?? []),
      forwardedProps,
      ...(state !== undefined && { state }),
    },
    mcpHeaders,
  }
}

/** Checked with the messages. Null stands for what is missing. */
function toShown(messages: unknown): AgUiMessage[] | undefined {
  const shown = (messages as Fields[]).map((message) =>
    Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)),
  )
  return shown.every(({ id }) => id !== undefined) ? (shown as unknown as AgUiMessage[]) : undefined
}

function requiredText(body: Fields, name: string): string {
  const text = optionalText(body, name)
  if (text === undefined) throw new MillraceError('bad-input', `${name} is missing.`, { status: 400 })
  return text
}

function readProps(value: unknown): Fields {
  if (value === undefined || value === null) return {}
  return toFields(value, 'forwardedProps')
}

/** As the client sent them, without null: the engine reads names, descriptions and parameters; `metadata` may ask for approval. */
function readTools(value: unknown): Fields[] {
  const list = toArray(value, 'tools')
  if (list.length > maxTools) throw bad('tools', `has ${list.length} entries; at most ${maxTools} are allowed.`)
  return list.map((item, i) => {
    const place = `tools[${i}]`
    const tool = toFields(item, place)
    const name = toString(tool['name'], `${place}.name`)
    if (!/^[\w.:-]{1,64}$/u.test(name)) throw bad(`${place}.name`, 'must be 1 to 64 letters, digits, _, -, . or :.')
    const made: Fields = { name }
    if (tool['description'] != null) made['description'] = toString(tool['description'], `${place}.description`)
    const { parameters, metadata } = tool
    if (parameters != null) made['parameters'] = toFields(parameters, `${place}.parameters`)
    if (metadata != null) made['metadata'] = toFields(metadata, `${place}.metadata`)
    if (tool['confirm'] === true) made['confirm'] = true
    return made
  })
}

function readContext(value: unknown): Fields[] {
  return toArray(value, 'context').map((item, i) => {
    const place = `context[${i}]`
    const { description, value: text } = toFields(item, place)
    return {
      description: toString(description, `${place}.description`),
      value: toString(text, `${place}.value`),
    }
  })
}
