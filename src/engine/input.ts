/** Converts a run's input into messages and client tools for a model, and checks them. */
import { MillraceError } from '../part/error.ts'
import type { Message, ToolSpec } from '../part/message.ts'
import { roles as userRoles, type Role } from '../part/principal.ts'
import type { Approval } from '../part/request-part.ts'

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
    if (approvalOf(item) || approvalOf(tool)) spec.approval = true
    return spec
  })
}

/**
 * The approvals that a request asks for, by name of tool: with `metadata: {approval: true}`, `{approval: {roles: [operator]}}` or `confirm: true`,
 * including tools of the agent's file. A request cannot remove an approval, nor add roles that may give it: see {@link stricter}.
 */
export function toApprovals(value: unknown): Map<string, Approval> {
  const approvals = new Map<string, Approval>()
  for (const item of toolItems(value) ?? []) {
    const tool = (item as { function?: unknown } | null)?.function ?? item
    const name = (tool as { name?: unknown } | null)?.name
    const approval = stricter(approvalOf(item), approvalOf(tool))
    if (typeof name === 'string' && approval) approvals.set(name, stricter(approvals.get(name), approval))
  }
  return approvals
}

/** What both require: of two lists of roles those in both. An empty list leaves the admins. */
export function stricter(one: Approval = false, other: Approval = false): Approval {
  if (typeof one !== 'object') return typeof other === 'object' ? other : one || other
  if (typeof other !== 'object') return one
  return { roles: one.roles.filter((role) => other.roles.includes(role)) }
}

/** Throws `bad-tools` for roles that do not exist: to ignore them would be to let everybody approve. */
function approvalOf(value: unknown): Approval {
  if (typeof value !== 'object' || value === null) return false
  const { metadata, confirm } = value as { metadata?: unknown; confirm?: unknown }
  const isConfirmed = confirm === true
  if (typeof metadata !== 'object' || metadata === null) return isConfirmed
  const noted = metadata as { approval?: unknown; confirm?: unknown }
  if (typeof noted.approval !== 'object' || noted.approval === null) {
    return isConfirmed || noted.approval === true || noted.confirm === true
  }
  const { roles: named } = noted.approval as { roles?: unknown }
  if (Array.isArray(named) && named.length > 0 && named.every(isRole)) return { roles: named }
  const cure = `a list of ${userRoles.join(', ')}`
  const { name } = value as { name?: unknown }
  throw new MillraceError(
    'bad-tools',
    `metadata.approval.roles of the tool ${JSON.stringify(name ?? null)} must be ${cure}.`,
  )
}

function isRole(value: unknown): value is Role {
  return userRoles.some((role) => role === value)
}

function isPart(part: unknown): boolean {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown }
  return typeof type === 'string' && (type !== 'text' || typeof text === 'string')
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : typeof value
}
