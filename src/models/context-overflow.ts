/**
 * How services say that a prompt does not fit the model's window. Most answer with a 400 that only their words tell from other mistakes.
 */
import { MillraceError } from '../part/error.ts'

export interface Overflow {
  /** Tokens of the model's window, if the service says it. */
  window?: number
}

interface OverflowText {
  /** Where the text is from, and the version in which it was read. */
  source: string
  text: RegExp
}

/** The first group that is a number is the window. */
export const overflowTexts: readonly OverflowText[] = [
  {
    source: 'OpenAI chat completions, 2026-11: code context_length_exceeded',
    text: /maximum context length is (\d[\d,]*) tokens/iu,
  },
  {
    source: 'OpenAI Responses, 2026-11: code context_length_exceeded',
    text: /exceeds the context window of this model|context_length_exceeded/iu,
  },
  {
    source: 'Anthropic Messages 2023-06-01, 2026-11',
    text: /prompt is too long(?:: \d+ tokens > (\d+) maximum)?/iu,
  },
  {
    source: 'Anthropic Messages 2023-06-01, 2026-11: prompt and max_tokens together',
    text: /input length and `?max_tokens`? exceed context limit: \d+ \+ \d+ > (\d+)/iu,
  },
  {
    source: 'Gemini API v1beta, 2026-11',
    text: /input token count(?: \(\d+\))? exceeds the maximum number of tokens allowed(?: \((\d+)\))?/iu,
  },
  {
    source: 'vLLM 0.11: the prompt alone, and with max_tokens',
    text: /maximum (?:model|context) length (?:is|of) (\d+)|longer than the maximum model length of (\d+)/iu,
  },
  {
    source: 'llama.cpp server b6900: type exceed_context_size_error',
    text: /exceeds? the available context size(?: \((\d+) tokens\))?|exceed_context_size_error/iu,
  },
  {
    source: 'LM Studio 0.3, SGLang 0.5, LiteLLM 1.80: their own words',
    text: /context (?:length|window|size)(?: limit)? (?:is |was )?exceeded|greater than the context length|longer than the model's context length|ContextWindowExceeded/iu,
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
