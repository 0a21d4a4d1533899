/**
 * OpenAI Chat Completions (and the older Completions) over SSE, as the `openai` package reads them. One answer per run;
 * `id`, `created` and `model` are the same in all frames. `openai-completion.ts` returns the same as one JSON.
 *
 * | part | frame |
 * |---|---|
 * | `run-start` | chat: `delta: {role: "assistant", content: ""}`, at once |
 * | `text-delta` of the answer | `delta.content`; parallel branches and blank lines as on the plain text wire (`answer-words.ts`); structured output in one piece, when it is complete and valid (`held-text.ts`) |
 * | `reasoning-delta` of the answer | chat: `delta.reasoning_content`, in the same order |
 * | `prompt` | extension `trace`: `choices: []` and `{type: "llm_prompt", stage, model, messages}` under the trace key |
 * | `tool-input-start`, `-delta` of a client's tool | chat: `delta.tool_calls`: index, id and name, then the arguments in fragments |
 * | `tool-call` of a client's tool | chat: the part of its arguments that was not streamed |
 * | `tool-call` that the server or the provider runs | chat, extension `tools`: `delta.tool_calls`, complete; else dropped |
 * | `tool-result` of a call that was sent | `delta.tool_outputs`, truncated at the limit; `preliminary` ones are dropped |
 * | `respond` of a router, and its result | dropped, also from traces |
 * | `answer-end` | the finish frame, then with `includeUsage` the usage frame, then `[DONE]` |
 * | `answer-end` when a client's call that was sent was not handed over | error, `[DONE]` |
 * | `run-end` before `answer-end` | completed: the run's output as text when no step answered, then as `answer-end`; else: error, `[DONE]`, no finish frame |
 * | `suspend` (not resumed since), `step-reset` of sent output | error, `[DONE]`: the protocol can neither wait nor retract |
 * | `source`, `file`, `reasoning-file`, `custom`, `data` | dropped: the protocol has no field for them that clients read |
 * | all others | dropped: they are for monitoring |
 *
 * The `prompt` marks client tools (`client: true`). They belong to this client if the run hands calls over. In a run that waits
 * for its clients instead, such a call is answered within the run and dropped here like any other.
 */
import type { Entry } from '../../part/entry.ts'
import type { ErrorValue } from '../../part/error.ts'
import { errorText } from '../error-text.ts'
import { createOpenAiAnswer } from './openai-answer.ts'
import { toOpenAiCode, toOpenAiUsage, type OpenAiOptions, type OpenAiOutput } from './openai-output.ts'
import { doneFrame } from '../ui/ui-chunk.ts'
import type { Encoder, EncoderOptions, Wire } from '../wire.ts'

export const openaiWire: Wire = {
  name: 'openai',
  contentType: 'text/event-stream',
  keepAlive: ': keep-alive\n\n',
  createEncoder: createOpenAiEncoder,
}

function createOpenAiEncoder(options: EncoderOptions = {}): Encoder {
  const frames = createFrames(options.openai ?? {})
  const answer = createOpenAiAnswer(options, frames)
  const encoder = {
    state: answer.state,
    encode(entry: Entry) {
      answer.apply(entry)
      encoder.state = answer.state
      return frames.take()
    },
    skip(entry: Entry) {
      frames.muted = true
      encoder.encode(entry)
      frames.muted = false
    },
    fail(error: ErrorValue) {
      answer.fail(error)
      encoder.state = answer.state
      return frames.take()
    },
  }
  return encoder
}

interface Frames extends OpenAiOutput {
  /** Writes nothing, but keeps the state up to date. */
  muted: boolean
  /** Returns the text written since the last call. */
  take(): string
}

function createFrames({
  object = 'chat.completion',
  includeUsage = false,
  traceKey = 'bernard',
}: OpenAiOptions): Frames {
  const isChat = object === 'chat.completion'
  const usageNull = includeUsage ? ',"usage":null' : ''
  let written = ''
  /** A frame up to its choices. */
  let head = ''
  /** The frame of a delta up to its text, so that it costs one concatenation. */
  let textStart = ''
  let reasoningStart = ''
  const end = `"finish_reason":null}]${usageNull}}\n\n`
  const textEnd = isChat ? `},${end}` : `,"index":0,"logprobs":null,${end}`

  const send = (frame: () => string): void => {
    if (!frames.muted) written += frame()
  }
  const sendDelta = (delta: object): void => {
    send(() => `${head}[{"index":0,"delta":${JSON.stringify(delta)},${end}`)
  }

  const frames: Frames = {
    muted: false,
    take() {
      const text = written
      written = ''
      return text
    },
    begin({ id, created, model }) {
      const kind = isChat ? 'chat.completion.chunk' : object
      const fields = JSON.stringify({ id, object: kind, created, model })
      head = `data: ${fields.slice(0, -1)},"choices":`
      textStart = isChat ? `${head}[{"index":0,"delta":{"content":` : `${head}[{"text":`
      reasoningStart = `${head}[{"index":0,"delta":{"reasoning_content":`
      if (isChat) sendDelta({ role: 'assistant', content: '' })
    },
    text(words) {
      if (!frames.muted) written += textStart + JSON.stringify(words) + textEnd
    },
    reasoning(words) {
      if (!frames.muted) written += reasoningStart + JSON.stringify(words) + textEnd
    },
    call({ index, id, name, arguments: json }) {
      sendDelta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: json } }] })
    },
    callArguments(index, fragment) {
      sendDelta({ tool_calls: [{ index, function: { arguments: fragment } }] })
    },
    toolOutput(id, content) {
      sendDelta({ tool_outputs: [{ id, content }] })
    },
    prompt(make) {
      send(() => `${head}[],${JSON.stringify(traceKey)}:${JSON.stringify(make())}${usageNull}}\n\n`)
    },
    finish(reason, usage) {
      const choice = isChat
        ? { index: 0, delta: {}, finish_reason: reason }
        : { text: '', index: 0, logprobs: null, finish_reason: reason }
      send(() => {
        const counts = includeUsage ? `${head}[],"usage":${JSON.stringify(toOpenAiUsage(usage))}}\n\n` : ''
        return `${head}[${JSON.stringify(choice)}]${usageNull}}\n\n${counts}${doneFrame}`
      })
    },
    fail(error) {
      send(() => errorFrame(error) + doneFrame)
    },
  }
  return frames
}

/** `retry_after`, in seconds, is our extension: OpenAI uses a header, but headers have already been sent. */
function errorFrame(error: ErrorValue): string {
  const retry = error.retryAfter === undefined ? undefined : { retry_after: Math.ceil(error.retryAfter) }
  const said = {
    message: errorText(error),
    type: 'server_error',
    code: toOpenAiCode(error.code),
    param: null,
    ...retry,
  }
  return `data: ${JSON.stringify({ error: said })}\n\n`
}
