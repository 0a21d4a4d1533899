/** Two prompts beside each other, as named texts: model, settings, system, each message, each tool. */
import type { WholePrompt } from '../../../src/fold/whole-prompt.ts'
import type { Message, ToolSpec } from '../../../src/part/message.ts'
import { textHash } from '../../../src/part/text-hash.ts'
import { align } from '../../kit/diff/align.ts'

export interface PromptPart {
  name: string
  /** Undefined: only the other one has it. */
  a?: string
  b?: string
}

export function isSame({ a, b }: PromptPart): boolean {
  return a === b
}

/** In the order in which a model reads them. What only one of them has stands alone. */
export function promptParts(a: WholePrompt | undefined, b: WholePrompt | undefined): PromptPart[] {
  return [
    ...one('model', a?.model, b?.model),
    ...one('settings', settingsOf(a), settingsOf(b)),
    ...one('system', a?.system, b?.system),
    ...paired(namedMessages(a?.messages), namedMessages(b?.messages)),
    ...paired(namedTools(a?.tools), namedTools(b?.tools)),
  ]
}

/** The names of what differs, each once: `system, user`. */
export function differingNames(parts: readonly PromptPart[]): string[] {
  return [...new Set(parts.filter((part) => !isSame(part)).map(({ name }) => name))]
}

type Named = readonly [name: string, text: string]

function one(name: string, a: string | undefined, b: string | undefined): PromptPart[] {
  return a === undefined && b === undefined ? [] : [partOf(name, a, b)]
}

function partOf(name: string, a: string | undefined, b: string | undefined): PromptPart {
  return { name, ...(a !== undefined && { a }), ...(b !== undefined && { b }) }
}

/** The same ones beside each other; between them, those with the same name: the words of one have changed. */
function paired(a: readonly Named[], b: readonly Named[]): PromptPart[] {
  const parts: PromptPart[] = []
  let [left, right]: [Named[], Named[]] = [[], []]
  const flush = () => {
    for (const [x, y] of align(left, right, ([name]) => name)) parts.push(partOf((x ?? y)![0], x?.[1], y?.[1]))
    left = []
    right = []
  }
  for (const [x, y] of align(a, b, (named) => named.join('\n'))) {
    if (x !== undefined && y !== undefined) {
      flush()
      parts.push(partOf(x[0], x[1], y[1]))
      continue
    }
    if (x !== undefined) left.push(x)
    if (y !== undefined) right.push(y)
  }
  flush()
  return parts
}

function namedMessages(messages: readonly Message[] = []): Named[] {
  return messages.map((message) => [message.role, textOf(message)])
}

/** As a person would write it down. Ids of calls are left out: they differ in every run. */
function textOf({ content }: Message): string {
  if (typeof content === 'string') return content
  return content.map(pieceOf).join('\n')
}

function pieceOf(part: Exclude<Message['content'], string>[number]): string {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return part.text
    case 'tool-call':
      return `${part.toolName}(${JSON.stringify(part.input)})`
    case 'tool-result': {
      const { output } = part
      return `${part.toolName} → ${'value' in output ? written(output.value) : written(output)}`
    }
    case 'file':
      return `${part.filename ?? 'file'} (${part.mediaType}, ${part.data.length} characters, ${textHash(part.data)})`
    default:
      return JSON.stringify(part)
  }
}

function written(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, undefined, 2) ?? '')
}

function namedTools(tools: readonly ToolSpec[] = []): Named[] {
  return tools.map(({ name, ...rest }) => [`tool ${name}`, JSON.stringify(rest, undefined, 2)])
}

function settingsOf(prompt: WholePrompt | undefined): string | undefined {
  if (prompt?.settings === undefined) return undefined
  const lines = Object.entries(prompt.settings).map(([name, value]) => `${name}: ${written(value)}`)
  return lines.join('\n')
}
