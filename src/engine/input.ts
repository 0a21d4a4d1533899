/** Converts a run's input into messages and client tools for a model, and checks them. */
import { MillraceError } from '../part/error.ts'
import type { Message, ToolSpec } from '../part/message.ts'

const roles: ReadonlySet<unknown> = new Set(['system', 'user', 'assistant', 'tool'])

/** Converts a list of `{role, content}`, or a string as one user message. */
export function toMessages(value: unknown, name: string): Message[] {
  if (typeof value === 'string') return [{ role: 'user', content: value }]
  if (!Array.isArray(value)) {
    throw new MillraceError('bad-messages', `${name} must be a list of {role, content}, not ${kindOf(value)}.`)
  }
  return value.map((message: unknown, i) => {
    const { role, content } = (message ?? {}) as Partial<Message>
    if (!roles.has(role)) {
      throw new MillraceError('bad-messages', `${name}[${i}].role must be system, user, assistant or tool.`)
    }
    if (typeof content !== 'string' && !Array.isArray(content)) {
      throw new MillraceError('bad-messages', `${name}[${i}].content must be a string or a list of parts.`)
    }
    const wrong = typeof content === 'string' ? -1 : content.findIndex((part: unknown) => !isPart(part))
    if (wrong >= 0) {
      throw new MillraceError(
        'bad-messages',
        `${name}[${i}].content[${wrong}] must be a part such as {type: "text", text}.`,
      )
    }
    return message as Message
  })
}

/** The tools of a request: a list, or a map by their names, as assistant-ui sends them. Undefined for anything else. */
export function toolItems(value: unknown): unknown[] | undefined {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value as unknown[]
  if (typeof value !== 'object') return undefined
  return Object.entries(value).map(([name, tool]: [string, unknown]) =>
    typeof tool === 'object' && tool !== null ? { ...tool, name } : { name },
  )
}

/**
 * The tools a client offers with its request, in any of the usual shapes: `{name, description, parameters}`,
 * `{name, inputSchema}`, or OpenAI's `{type: 'function', function: {…}}`, in a list; or a map of them by name.
 */
export function toToolSpecs(value: unknown): ToolSpec[] {
  const items = toolItems(value)
  if (items === undefined) {
    throw new MillraceError('bad-tools', `tools must be a list or a map by name, not ${kindOf(value)}.`)
  }
  return items.map((item: unknown, i) => {
    const tool = ((item as { function?: unknown } | null)?.function ?? item ?? {}) as Record<string, unknown>
    const { name, description } = tool
    if (typeof name !== 'string' || name === '') throw new MillraceError('bad-tools', `tools[${i}] has no name.`)
    const schema = tool['parameters'] ?? tool['inputSchema'] ?? { type: 'object', properties: {} }
    if (typeof schema !== 'object' || schema === null) {
      throw new MillraceError('bad-tools', `tools[${i}].parameters must be JSON Schema.`)
    }
    const spec: ToolSpec = { name, inputSchema: schema as Record<string, unknown> }
    if (typeof description === 'string') spec.description = description
    if (typeof tool['strict'] === 'boolean') spec.strict = tool['strict']
    if (wantsApproval(item) || wantsApproval(tool)) spec.approval = true
    return spec
  })
}

/**
 * The names of tools whose calls need approval by the request: with `metadata: {approval: true}` or `confirm: true`, including tools of the agent's
 * file. A request cannot remove an approval.
 */
export function toApprovalNames(value: unknown): Set<string> {
  const names = new Set<string>()
  for (const item of toolItems(value) ?? []) {
    const tool = (item as { function?: unknown } | null)?.function ?? item
    const name = (tool as { name?: unknown } | null)?.name
    if (typeof name === 'string' && (wantsApproval(item) || wantsApproval(tool))) names.add(name)
  }
  return names
}

function wantsApproval(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { metadata, confirm } = value as { metadata?: unknown; confirm?: unknown }
  if (confirm === true) return true
  if (typeof metadata !== 'object' || metadata === null) return false
  const noted = metadata as { approval?: unknown; confirm?: unknown }
  return noted.approval === true || noted.confirm === true
}

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value
}
