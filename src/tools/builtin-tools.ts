import type { ToolImplementation, ToolContext } from './tool.ts'
import { calculator } from './calculator.ts'
import { z } from 'zod'
import { MillraceError } from '../part/error.ts'

/** `{words, limit?}` → `{found}`: matches in earlier conversations with this user. */
const searchConversations: ToolImplementation = {
  description:
    'Search what was said in earlier conversations with this user. Finds messages that contain all the given words, newest first.',
  parameters: z.object({
    words: z.string().trim().min(1).max(200).describe('One to three words that the message must contain'),
    limit: z.number().int().min(1).max(20).optional().describe('Most messages to return. Default: 5'),
  }),
  execute: async ({ words, limit = 5 }: { words: string; limit?: number }, { searchEarlier }: ToolContext) => ({
    found: (await searchEarlier(words, limit)).map(({ at, ...said }) => ({ ...said, at: new Date(at).toISOString() })),
  }),
  idempotent: true,
  volatile: true,
}

/** `{timeZone?}` → `{time}`: ISO 8601 in UTC (`…Z`), or with the offset of the given time zone. */
export function createCurrentTime(now: () => Date = () => new Date()): ToolImplementation {
  return {
    description: 'Get the current date and time',
    parameters: z.object({
      timeZone: z.string().optional().describe('IANA time zone, such as Europe/Berlin. Default: UTC'),
    }),
    execute: ({ timeZone }: { timeZone?: string }) => ({
      time: timeZone ? inZone(now(), timeZone) : now().toISOString(),
    }),
    idempotent: true,
  }
}

function inZone(date: Date, timeZone: string): string {
  const options = { timeZone, hourCycle: 'h23', timeZoneName: 'longOffset', fractionalSecondDigits: 3 } as const
  const digits = {
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  } as const
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en-US', { ...options, ...digits })
  } catch (cause) {
    throw new MillraceError(
      'bad-time-zone',
      `unknown time zone "${timeZone}"; use an IANA name such as Europe/Berlin`,
      { cause },
    )
  }
  const part = Object.fromEntries(format.formatToParts(date).map(({ type, value }) => [type, value]))
  // Some engines write the offset of UTC as a bare `GMT`.
  const offset = part.timeZoneName?.replace('GMT', '') || '+00:00'
  return `${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}.${part.fractionalSecond}${offset}`
}

/** The tools of every runtime. A configured tool of the same name takes precedence. */
export const builtinTools: ReadonlyMap<string, ToolImplementation> = new Map([
  ['calculator', calculator],
  ['getCurrentTime', createCurrentTime()],
  ['searchConversations', searchConversations],
])
