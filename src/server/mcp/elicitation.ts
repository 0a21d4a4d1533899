/** Open requests of a run as questions of MCP (`elicitation/create`), and what the client replies to them. Pure. */
import type { EntryOf } from '../../part/entry.ts'
import type { Reply } from '../../part/request-part.ts'

/** What a client can show. */
export interface ElicitationModes {
  form: boolean
  url: boolean
}

/** The parameters of `elicitation/create`. Both eras use the same; legacy clients before 2025-11-25 know forms only. */
export type Elicitation =
  | { mode: 'form'; message: string; requestedSchema: FormSchema }
  | { mode: 'url'; message: string; url: string; elicitationId: string }

/** A flat object of texts, numbers, booleans and choices. */
export interface FormSchema {
  type: 'object'
  properties: Record<string, Record<string, unknown>>
  required?: string[]
}

export interface ElicitationContext {
  modes: ElicitationModes
  runId: string
  /** Outermost first: the run's agent, then those that it has called and that lead to the request's step. */
  agents: readonly string[]
  /** `server.publicUrl`. Without it there is no `url` mode. */
  publicUrl?: string | undefined
  /** The id of a link, which the client may name to others. Default: that of the key. */
  elicitationId?: string | undefined
  /** Removes secrets: `runtime.redact`. */
  redact: <T>(value: T) => T
}

/** Undefined: this client cannot be asked. Client tools never can. */
export declare function toElicitation(request: EntryOf<'request'>, context: ElicitationContext): Elicitation | undefined

/**
 * `reply`: post it. `open`: nothing is replied, and this client is not asked again: it has cancelled, or shows our page to a person. `misfit`: the content
 * does not fit, so ask again under a new key.
 */
export type ElicitationOutcome =
  | { kind: 'reply'; reply: Reply }
  | { kind: 'open'; why: 'cancelled' | 'on-page' }
  | { kind: 'misfit'; faults: string[] }

/** `result`: what the client sent as the result of the question: `{action, content?}`. Anything may come. */
export declare function fromElicitation(
  request: EntryOf<'request'>,
  asked: 'form' | 'url',
  result: unknown,
): ElicitationOutcome

/** What a client declares: `capabilities.elicitation`. `{}` means forms. */
export declare function elicitationModes(capabilities: unknown): ElicitationModes

/**
 * The key of a request among those of its run, the same at every instance. `asked`: how often content for it did not fit; each has another key. A task's keys
 * never repeat in it.
 */
export declare function elicitationKey(request: Pick<EntryOf<'request'>, 'requestId'>, asked?: number): string
