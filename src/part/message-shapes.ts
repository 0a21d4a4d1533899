/** The shapes of messages and tool specifications. */
import type {
  AssistantContent,
  AssistantMessage,
  CustomContent,
  FileContent,
  Message,
  ReasoningContent,
  SystemMessage,
  TextContent,
  ToolCallContent,
  ToolMessage,
  ToolOutput,
  ToolResultContent,
  ToolSpec,
  UserMessage,
} from './message.ts'
import type { ProviderMetadata } from './model-part.ts'
import {
  anything,
  flag,
  listOf,
  objectOf,
  oneOf,
  optional,
  recordOf,
  text,
  textOr,
  valueOf,
  variantOf,
  yes,
  type Shape,
} from './shape.ts'

/** Its content is the provider's business. */
export const metadata = optional(recordOf(recordOf(anything)) as Shape<unknown> as Shape<ProviderMetadata>)

const customKind = valueOf<CustomContent['kind']>('a string with a dot', (value) => typeof value === 'string')

const textContent = objectOf<TextContent>({ type: oneOf('text'), text, providerOptions: metadata })
const fileContent = objectOf<FileContent>({
  type: oneOf('file'),
  mediaType: text,
  data: text,
  filename: optional(text),
  providerOptions: metadata,
})
const toolOutput = variantOf<ToolOutput, 'type'>('type', {
  text: objectOf({ type: oneOf('text'), value: text }),
  json: objectOf({ type: oneOf('json'), value: anything }),
  'error-text': objectOf({ type: oneOf('error-text'), value: text }),
  'error-json': objectOf({ type: oneOf('error-json'), value: anything }),
  'execution-denied': objectOf<Extract<ToolOutput, { type: 'execution-denied' }>>({
    type: oneOf('execution-denied'),
    reason: optional(text),
  }),
})
const toolResultContent = objectOf<ToolResultContent>({
  type: oneOf('tool-result'),
  toolCallId: text,
  toolName: text,
  output: toolOutput,
  handle: optional(text),
  shortened: optional(yes),
  providerOptions: metadata,
})
const assistantContent = variantOf<AssistantContent, 'type'>('type', {
  text: textContent,
  reasoning: objectOf<ReasoningContent>({ type: oneOf('reasoning'), text, providerOptions: metadata }),
  file: fileContent,
  custom: objectOf<CustomContent>({ type: oneOf('custom'), kind: customKind, providerOptions: metadata }),
  'tool-call': objectOf<ToolCallContent>({
    type: oneOf('tool-call'),
    toolCallId: text,
    toolName: text,
    input: anything,
    providerExecuted: optional(flag),
    providerOptions: metadata,
  }),
  'tool-result': toolResultContent,
})

/** What a person says: text, or text and files. */
export const userContent = textOr(
  listOf(variantOf<TextContent | FileContent, 'type'>('type', { text: textContent, file: fileContent })),
)

export const message = variantOf<Message, 'role'>('role', {
  system: objectOf<SystemMessage>({
    role: oneOf('system'),
    id: optional(text),
    content: text,
    providerOptions: metadata,
  }),
  user: objectOf<UserMessage>({
    role: oneOf('user'),
    id: optional(text),
    content: userContent,
    providerOptions: metadata,
  }),
  assistant: objectOf<AssistantMessage>({
    role: oneOf('assistant'),
    id: optional(text),
    model: optional(text),
    content: textOr(listOf(assistantContent)),
    providerOptions: metadata,
  }),
  tool: objectOf<ToolMessage>({
    role: oneOf('tool'),
    id: optional(text),
    content: listOf(toolResultContent),
    providerOptions: metadata,
  }),
})

export const toolSpec = objectOf<ToolSpec>({
  name: text,
  description: optional(text),
  inputSchema: recordOf(anything),
  strict: optional(flag),
  client: optional(yes),
  approval: optional(yes),
})
