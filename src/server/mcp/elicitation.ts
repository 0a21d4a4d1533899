/**
 * Open requests of a run as questions of MCP (`elicitation/create`), and what the client replies to them. Pure.
 *
 * | request | question |
 * |---|---|
 * | approval | form `{approved, reason?}`; decline, or `approved: false`: denied |
 * | question of one plain value, or without a schema | form `{value}` |
 * | question with a flat object | form |
 * | sign-in to an MCP server | link to where that is done, under the same conditions |
 * | other question, or one that asks for a secret | link to our page, if the client shows links and `server.publicUrl` is set |
 * | client tool; an approval that the caller's roles may not give | none |
 */
import type { EntryOf } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { connectPath, signInReason } from '../../part/sign-in-request.ts'
import { ownValue } from '../../part/own-value.ts'
import { hasRole, type Role } from '../../part/principal.ts'
import type { Reply } from '../../part/request-part.ts'
import { checkAnswer } from '../../runtime/answer-to.ts'
import { toFormField, type FormField } from './form-field.ts'
import { isObject } from '../access/told-principal.ts'
import { shownJson, shownLine, shownText } from '../../part/shown-text.ts'

/** What a client can show. */
export interface ElicitationModes {
  form: boolean
  url: boolean
}

/** The parameters of `elicitation/create`. Both eras use the same; clients before 2025-11-25 know forms only. */
export type Elicitation =
  | { mode: 'form'; message: string; requestedSchema: FormSchema }
  | { mode: 'url'; message: string; url: string; elicitationId: string }

/** A flat object of texts, numbers, booleans and choices. */
export interface FormSchema {
  type: 'object'
  properties: Record<string, FormField>
  required?: string[]
}

export interface ElicitationContext {
  modes: ElicitationModes
  runId: string
  /** Outermost first: the run's agent, then those that it has called and that lead to the request's step. */
  agents: readonly string[]
  /** Of the caller: `runtime.roles`. Absent: it may answer everything. */
  roles?: readonly Role[] | undefined
  /** `server.publicUrl`. Without it there are no links. */
  publicUrl?: string | undefined
  /** Of a link, unique. Default: the key of the request. */
  elicitationId?: string | undefined
  /** How often content for it did not fit. */
  refused?: number
  /** Removes secrets: `runtime.redact`. */
  redact: <T>(value: T) => T
}

/** Characters of a call's arguments in a message. */
const mostArguments = 2000
/** Characters of a question. */
const mostMessage = 4000
/** Bytes of a reply's content. */
const mostContent = 65_536

/** Undefined: this client cannot be asked. */
export function toElicitation(request: EntryOf<'request'>, context: ElicitationContext): Elicitation | undefined {
  const { modes, publicUrl, runId, roles, refused = 0 } = context
  if (request.kind === 'tool' || !hasRole(roles, request.roles)) return undefined
  const text = request.kind === 'approval' ? approvalText(request, context) : questionText(request, context)
  const message = refused > 0 ? `The last reply did not fit.\n${text}` : text
  const requestedSchema = formOf(request)
  if (requestedSchema !== undefined && modes.form) return { mode: 'form', message, requestedSchema }
  // A person reads an approval in a form or nowhere: the client would have to leave for the page.
  if (request.kind === 'approval' || !modes.url || publicUrl === undefined) return undefined
  const path = isSignIn(request) ? connectPath(request.requestId) : `/runs/${encodeURIComponent(runId)}`
  const url = publicUrl.replace(/\/$/u, '') + path
  const { elicitationId = elicitationKey(request, runId, refused) } = context
  return { mode: 'url', message, url, elicitationId }
}

function approvalText({ toolName, input }: EntryOf<'request'>, { agents, redact }: ElicitationContext): string {
  const who = agents.map((name) => shownLine(name, 100)).join(' > ')
  return `${who} wants to call ${shownLine(toolName ?? '', 200)} with:\n${shownJson(redact(input), mostArguments)}`
}

function questionText(request: EntryOf<'request'>, { agents, redact }: ElicitationContext): string {
  const asked = request.kind === 'input' ? request.message : undefined
  const text = shownText(redact(asked ?? 'The agent asks for a value.'), mostMessage)
  // One agent is the tool that the client has called.
  return agents.length < 2 ? text : `${agents.map((name) => shownLine(name, 100)).join(' > ')}: ${text}`
}

const approvalForm: FormSchema = {
  type: 'object',
  properties: {
    approved: { type: 'boolean', title: 'Approve this call', default: true },
    reason: { type: 'string', title: 'Reason', description: 'Why not, or what to mind. The model reads it.' },
  },
  required: ['approved'],
}

/** Undefined: it does not fit into a form, or must not be asked in one. */
function formOf(request: EntryOf<'request'>): FormSchema | undefined {
  if (request.kind === 'approval') return approvalForm
  if (request.kind !== 'input' || isSecret(request) || isSignIn(request)) return undefined
  const { schema } = request
  if (schema === undefined) return { type: 'object', properties: { value: { type: 'string' } }, required: ['value'] }
  const plain = toFormField(schema)
  if (plain !== undefined) return { type: 'object', properties: { value: plain }, required: ['value'] }
  return flatForm(schema)
}

/** Keywords that leave an object flat. What they say beyond a form is checked with the reply. */
const flatKeywords = new Set(
  [
    'type',
    'properties',
    'required',
    'additionalProperties',
    'title',
    'description',
    'default',
    '$schema',
    '$id',
  ].concat(['$comment', 'examples', 'minProperties', 'maxProperties', 'propertyOrder']),
)

function flatForm(schema: Record<string, unknown>): FormSchema | undefined {
  const properties = ownValue(schema, 'properties')
  if (ownValue(schema, 'type') !== 'object' || !isObject(properties)) return undefined
  if (!Object.keys(schema).every((key) => flatKeywords.has(key))) return undefined
  const fields: [string, FormField][] = []
  for (const [name, each] of Object.entries(properties)) {
    const field = isObject(each) && shownLine(name) === name ? toFormField(each) : undefined
    if (field === undefined) return undefined
    fields.push([name, field])
  }
  const names = ownValue(schema, 'required')
  const required = Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
  if (!required.every((name) => Object.hasOwn(properties, name))) return undefined
  return { type: 'object', properties: Object.fromEntries(fields), ...(required.length > 0 && { required }) }
}

function isSignIn(request: EntryOf<'request'>): boolean {
  return request.kind === 'input' && request.reason === signInReason
}

/** `metadata.secret: true`, or a field that JSON Schema marks as one. */
function isSecret(request: EntryOf<'request'>): boolean {
  if (request.kind !== 'input') return false
  if (ownValue(request.metadata, 'secret') === true) return true
  const { schema } = request
  const properties = ownValue(schema, 'properties')
  const fields = [schema, ...(isObject(properties) ? Object.values(properties) : [])]
  return fields.some((each) => {
    return isObject(each) && (ownValue(each, 'format') === 'password' || ownValue(each, 'writeOnly') === true)
  })
}

/**
 * `reply`: post it. `open`: nothing is replied, and this client is not asked again: it has cancelled, or shows our page to a person. `misfit`: the content
 * does not fit, so ask again under a new key.
 */
export type ElicitationOutcome =
  | { kind: 'reply'; reply: Reply }
  | { kind: 'open'; why: 'cancelled' | 'on-page' }
  | { kind: 'misfit'; faults: string[] }

/** `result`: what the client sent as the result of the question: `{action, content?}`. Anything may come. */
export function fromElicitation(
  request: EntryOf<'request'>,
  asked: Elicitation['mode'],
  result: unknown,
): ElicitationOutcome {
  const action = isObject(result) ? ownValue(result, 'action') : undefined
  const given = isObject(result) ? ownValue(result, 'content') : undefined
  if (action === 'cancel') return { kind: 'open', why: 'cancelled' }
  if (action === 'decline') return { kind: 'reply', reply: declined(request, given) }
  if (action !== 'accept') return misfit('action must be accept, decline or cancel')
  if (asked === 'url') return { kind: 'open', why: 'on-page' }
  const content = given ?? {}
  if (!isObject(content)) return misfit('content must be an object')
  if (new TextEncoder().encode(JSON.stringify(content)).length > mostContent)
    return misfit(`content must have at most ${mostContent} bytes`)
  return request.kind === 'approval' ? approvalOf(content) : valueOf(request, content)
}

function misfit(...faults: string[]): ElicitationOutcome {
  return { kind: 'misfit', faults }
}

function declined({ kind }: EntryOf<'request'>, content: unknown): Reply {
  if (kind === 'input') return { kind, cancelled: true, declined: true }
  const reason = isObject(content) ? reasonIn(content) : undefined
  return { kind: 'approval', approved: false, ...(typeof reason === 'string' && { reason }) }
}

function approvalOf(content: Record<string, unknown>): ElicitationOutcome {
  const approved = Object.hasOwn(content, 'approved') ? content['approved'] : true
  if (typeof approved !== 'boolean') return misfit('approved must be a boolean')
  const reason = reasonIn(content)
  if (reason !== undefined && typeof reason !== 'string') return misfit('reason must be a string')
  return { kind: 'reply', reply: { kind: 'approval', approved, ...(reason !== undefined && { reason }) } }
}

/** Forms send fields that nobody has filled in as empty texts or null. */
function reasonIn(content: Record<string, unknown>): unknown {
  const reason = ownValue(content, 'reason')
  return reason === '' || reason === null ? undefined : reason
}

function valueOf(request: EntryOf<'request'>, content: Record<string, unknown>): ElicitationOutcome {
  const form = formOf(request)
  if (request.kind !== 'input' || form === undefined) return misfit('this cannot be answered in a form')
  const isPlain = request.schema === undefined || toFormField(request.schema) !== undefined
  if (isPlain && !Object.hasOwn(content, 'value')) return misfit('value is missing')
  const value = isPlain ? content['value'] : content
  if (request.schema === undefined && typeof value !== 'string') return misfit('value must be a string')
  const reply: Reply = { kind: 'input', value }
  try {
    checkAnswer(request, reply)
  } catch (error) {
    if (error instanceof MillraceError) return misfit(error.message)
    throw error
  }
  return { kind: 'reply', reply }
}

/** What a client declares: `capabilities.elicitation`. `{}` means forms. */
export function elicitationModes(capabilities: unknown): ElicitationModes {
  const given = isObject(capabilities) ? ownValue(capabilities, 'elicitation') : undefined
  if (!isObject(given)) return { form: false, url: false }
  const url = isObject(ownValue(given, 'url'))
  return { form: isObject(ownValue(given, 'form')) || !url, url }
}

/**
 * The key of a request among those of its run: the same at every instance, and never again in this run. `refused`: how often content for it did not fit;
 * each time it has another key.
 */
export function elicitationKey({ requestId }: Pick<EntryOf<'request'>, 'requestId'>, runId: string, refused = 0) {
  const own = requestId.startsWith(`${runId}.`) ? `ask-${requestId.slice(runId.length + 1)}` : requestId
  return refused === 0 ? own : `${own}~${refused}`
}

/**
 * Requests by the keys under which a call without a task asks them, all different: the word that a question gives as its `reason`, else its
 * {@link elicitationKey}. Words come again in a run, so only a sealed state says which request such a key means.
 */
export function namedKeys(requests: readonly EntryOf<'request'>[], runId: string): Map<string, EntryOf<'request'>> {
  const named = new Map<string, EntryOf<'request'>>()
  for (const request of requests) {
    const word = request.kind === 'input' ? request.reason : undefined
    const isUsable = word !== undefined && /^[\w-]{1,64}$/u.test(word) && !named.has(word)
    named.set(isUsable ? word : elicitationKey(request, runId), request)
  }
  return named
}
