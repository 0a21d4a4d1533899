/** The windows of models: as the step or the config says, else as providers' errors have shown. */
import type { Overflow } from '../models/context-overflow.ts'
import type { ModelResolver } from '../models/language-model.ts'
import type { ContextConfig } from '../pipeline/context-config.ts'

/** Tokens that stay as they are, if the step says nothing. */
const defaultKeep = 20_000
/** Of the window, at most. */
const mostKept = 0.25
/** Maximum number of names, which come from agent files and requests. */
const most = 1000

/** Windows that were learned in this process. */
const learned = new WeakMap<ModelResolver, Map<string, number>>()

/** Undefined if it is not known. */
export function windowOf(models: ModelResolver, name: string, { window }: ContextConfig): number | undefined {
  return window ?? models.windows?.get(name) ?? learned.get(models)?.get(name)
}

/** A provider has refused a prompt of about so many tokens. Returns the window: as it says, else the size of the prompt. */
export function learnWindow(models: ModelResolver, name: string, { window }: Overflow, size: number): number {
  const known = learned.get(models) ?? new Map<string, number>()
  learned.set(models, known)
  const found = window ?? Math.min(size, known.get(name) ?? Infinity)
  known.delete(name)
  known.set(name, found)
  if (known.size > most) known.delete(known.keys().next().value!)
  return found
}

/** In tokens. */
export interface Sizes {
  /** From this estimate on a prompt is too long. */
  most: number
  /** Of the newest messages, what stays. */
  keep: number
}

/** `fixed`: what each prompt has, whatever is summarized. A summary must leave room, or each call would make another one. */
export function sizesFor(window: number, fixed: number, { summarizeAt, keep }: ContextConfig): Sizes {
  const share = summarizeAt === 'none' ? 0.75 : summarizeAt
  const trigger = window * share
  const room = Math.max(0, trigger - fixed) * 0.6
  return { most: trigger, keep: Math.min(keep ?? Math.min(defaultKeep, window * mostKept), room) }
}
