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
 * | `tool-call` that the server or the provider runs | chat, extension `tools`: `delta.tool_calls`, complete; else dropped. Calls inside of a tool, which may be an agent, are dropped: they are in the traces of its model calls, with the `agents` that lead there |
 * | `tool-result` of a call that was sent | `delta.tool_outputs`, truncated at the limit; `preliminary` ones are dropped |
 * | `respond` of a router, and its result | dropped, also from traces |
 * | `message` of a request that reads on from there | as `answer-end`: `stop`, with the usage so far |
 * | `answer-end` | the finish frame, then with `includeUsage` the usage frame, then `[DONE]` |
 * | `answer-end` when a client's call that was sent was not handed over | error, `[DONE]` |
 * | `run-end` before `answer-end` | completed: the run's output as text when no step answered, then as `answer-end`; else: error, `[DONE]`, no finish frame |
 * | `suspend` (not resumed since) for approvals, in a run that hands over its client's calls | words for people (`openai-waiting.ts`), then as `answer-end`, with the requests under `millrace` in the finish frame; those that need a role which the client does not have are `waiting` there, without their ids |
 * | `suspend` (not resumed since) for anything else, `step-reset` of sent output | error, `[DONE]`: the protocol can neither wait nor retract |
 * | `source`, `file`, `reasoning-file`, `custom`, `data` | dropped: the protocol has no field for them that clients read |
 * | all others | dropped: they are for monitoring |
 *
 * The `prompt` marks client tools (`client: true`). They belong to this client if the run hands calls over. In a run that waits
 * for its clients instead, such a call is answered within the run and dropped here like any other.
 *
 * All ids of calls have the form of OpenAI's: `part/openai-call-id.ts`.
 */
import { sse } from '../framing/text-frames.ts'
import { createWire } from '../wire.ts'
import { createOpenAiAnswer } from './openai-answer.ts'
import { createChunkOutput, type OpenAiEvent } from './openai-chunk.ts'
import type { OpenAiOptions } from './openai-output.ts'

/** OpenAI Chat Completions (and Completions) over SSE. */
export const openaiWire = createWire<OpenAiEvent, OpenAiOptions>({
  name: 'openai',
  project: (sink, context, options) => createOpenAiAnswer(context, options, createChunkOutput(sink, options)),
  framing: sse({ done: '[DONE]' }),
})
