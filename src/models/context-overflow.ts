/**
 * How services say that a prompt does not fit the model's window. Most answer with a 400 that only their words tell from other mistakes.
 */
import { MillraceError } from '../part/error.ts'

export interface Overflow {
  /** Tokens of the model's window, if the service says it. */
  window?: number
}

interface OverflowText {
  /** The service, with the version of its API or of the program. */
  source: string
  text: RegExp
}

/** The first group that is a number is the window. Read in November 2026, in the services' answers as their users report them. */
export const overflowTexts: readonly OverflowText[] = [
  {
    source: 'OpenAI chat completions (code context_length_exceeded); vLLM 0.6 to 0.11 with the same words',
    text: /maximum (?:model|context|prompt) length (?:is|of) (\d[\d,]*)/iu,
  },
  {
    source: 'OpenAI Responses v1 (code context_length_exceeded)',
    text: /exceeds the context window of this model|context_length_exceeded/iu,
  },
  {
    source: 'Anthropic Messages 2023-06-01',
    text: /prompt is too long(?:: \d+ tokens > (\d+) maximum)?/iu,
  },
  {
    source: 'Anthropic Messages 2023-06-01, prompt and max_tokens together',
    text: /input length and `?max_tokens`? exceed context limit: \d+ \+ \d+ > (\d+)/iu,
  },
  {
    source: 'Gemini API v1beta, in three forms',
    text: /input token count(?: \(\d+\))? exceeds the maximum number of tokens allowed(?: \(?(\d+)\)?)?/iu,
  },
  {
    source: 'vLLM 0.11, engine V1',
    text: /longer than the maximum model length of (\d+)/iu,
  },
  {
    source: 'llama.cpp server since b6000 (type exceed_context_size_error)',
    text: /available context size \((\d+) tokens\)|exceed_context_size_error[^]*"n_ctx":\s*(\d+)/iu,
  },
  {
    source: 'llama.cpp server before b6000, which does not say the size',
    text: /exceeds? the available context size/iu,
  },
  {
    source: 'Bedrock runtime 2023-09-30, LM Studio 0.3, LiteLLM 1: their own words',
    text: /input is too long for requested model|context (?:length|window|size)(?: limit)? (?:is |was )?exceeded|greater than the context length|longer than the model's context length|ContextWindowExceeded/iu,
  },
]

/** The reason with which Anthropic ends an answer that has filled the window. */
export const windowFilled = 'model_context_window_exceeded'

/** Whether a model call has failed because its prompt is too long. */
export function overflowIn(error: unknown): Overflow | undefined {
  if (!(error instanceof MillraceError)) return undefined
  const { code, status, message } = error
  if (
    code !== 'model-refused' &&
    code !== 'model-failed' &&
    code !== 'model-unavailable' &&
    code !== 'model-incomplete'
  )
    return undefined
  const said = `${message}\n${codesOf(error.cause)}`
  for (const { text } of overflowTexts) {
    const found = text.exec(said)
    if (found === null) continue
    const window = found.slice(1).find((each) => each !== undefined)
    return window === undefined ? {} : { window: Number(window.replaceAll(',', '')) }
  }
  return status === 413 || said.includes(windowFilled) ? {} : undefined
}

/** The service's own names for the error, which its text may lack. */
function codesOf(cause: unknown): string {
  const { responseBody, data, code, type, error } = (cause ?? {}) as Record<string, unknown>
  const inner = typeof error === 'object' ? (error as Record<string, unknown> | null) : undefined
  const body = typeof responseBody === 'string' ? responseBody.slice(0, 4000) : ''
  const names = [
    code,
    type,
    inner?.['code'],
    inner?.['type'],
    (data as { error?: { code?: unknown } } | null)?.error?.code,
  ]
  return `${body}\n${names.filter((each) => typeof each === 'string').join('\n')}`
}
