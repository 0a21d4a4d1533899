/** Checks of single parameters, for Chat Completions, Responses and Messages. Each throws a `BadParameter` that names it by its place. */
import { BadParameter } from '../../wire/openai/from-openai-messages.ts'
import { ownValue } from '../../part/own-value.ts'
import { optionalText } from '../http/body.ts'

export function toText(value: unknown, name: string): string {
  if (typeof value === 'string') return value
  throw new BadParameter(name, 'must be a string.')
}

export function toFlag(value: unknown, name: string): boolean {
  if (typeof value === 'boolean') return value
  throw new BadParameter(name, 'must be true or false.')
}

/** `from` and `to` count as well. */
export function toNumber(value: unknown, name: string, from: number, to: number, whole = false): number {
  const fits = typeof value === 'number' && value >= from && value <= to && (!whole || Number.isInteger(value))
  if (fits) return value
  throw new BadParameter(name, `must be ${whole ? 'a whole number' : 'a number'} from ${from} to ${to}.`)
}

export function toFields(value: unknown, name: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new BadParameter(name, 'must be an object.')
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

export function toEffort(value: unknown, name: string): (typeof efforts)[number] {
  const effort = efforts.find((each) => each === value)
  if (effort === undefined) throw new BadParameter(name, `must be one of ${efforts.join(', ')}.`)
  return effort
}

/** The name of a thread or session. */
export function header({ headers }: Request, name: string): string | undefined {
  try {
    return optionalText({ [name]: headers.get(name) }, name)
  } catch (error) {
    throw new BadParameter(name, (error as Error).message.slice(name.length + 1))
  }
}

/** Where YAML of one run is not taken: without it the answer would be another one than asked for. */
export const pipelineCure = 'Send it to POST /api/chat or POST /api/runs.'

/** `declared`: keys that the agent's `input` declares. */
export function refusePipeline(body: Record<string, unknown>, declared: readonly string[]): void {
  if (ownValue(body, 'pipeline') == null || declared.includes('pipeline')) return
  throw new BadParameter('pipeline', `is not supported. ${pipelineCure}`)
}
