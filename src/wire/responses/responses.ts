/**
 * OpenAI Responses over SSE, as OpenResponses describes it. A response is the answer of one run: its id is `resp_<run>`, and the ids of its items
 * have the run and their number (`msg_<run>_<n>`). `responses-json.ts` returns the same as one JSON.
 *
 * | part | event |
 * |---|---|
 * | `run-start` | `response.created`, `response.in_progress`, at once |
 * | `text-start` of the answer | `output_item.added` (`message`), `content_part.added`. At once, not with the first text: so ids and numbers stay when deltas are merged |
 * | `text-delta` of the answer | `output_text.delta`; parallel branches are items side by side; structured output in one piece, when it is complete and valid (`held-text.ts`) |
 * | `text-end` | `output_text.done`, `content_part.done`, `output_item.done` |
 * | `source` (a page) while text is open | `output_text.annotation.added`; else dropped: the protocol has no place for it |
 * | `reasoning-*` of the answer | a `reasoning` item with one summary, `reasoning_summary_text.delta` and `.done`; with a token of ours if the request asks for it |
 * | `tool-input-*`, `tool-call` of a client's tool | `function_call`, `function_call_arguments.delta` and `.done`; a custom tool: `custom_tool_call`, its text in one piece |
 * | its `tool-result` with the outcome `handed-over` | `output_item.done`; any other outcome: `response.failed` |
 * | `tool-call` that the server or the provider runs, in the answer | `mcp_call`, `mcp_call.in_progress`, `mcp_call_arguments.done` |
 * | its final `tool-result` | `mcp_call.completed` or `.failed`, `output_item.done` with the truncated output |
 * | `respond` of a router, calls inside of tools, `preliminary` results | dropped |
 * | `step-reset` | open texts and server's calls end as `incomplete` or failed; a client's call that was begun: `response.failed` |
 * | `suspend` (not resumed since) for approvals, in a run that hands over its client's calls | an `mcp_approval_request` each, if the request names the agent as a tool; a message with words for people (`openai-waiting.ts`), `response.completed` |
 * | `suspend` for anything else | `response.failed` |
 * | `answer-end` | `response.completed`; with its reason `response.incomplete`: `max_output_tokens`, `content_filter`, `max_steps` |
 * | `run-end` before `answer-end` | completed: its output as text when no step answered; budget, timeout, stop: `response.incomplete`; else `response.failed` |
 * | `file`, `reasoning-file`, `custom`, `data` | dropped: clients throw on items that they do not know |
 * | all others | dropped: they are for monitoring |
 *
 * The last event has the whole output. There is no `response.cancelled` and no `error` event: clients take them for a lost connection, and ask again.
 */
import { sse } from '../framing/text-frames.ts'
import { createWire } from '../wire.ts'
import type { ResponsesEvent } from './response-items.ts'
import { createResponsesAnswer, type ResponsesOptions } from './responses-answer.ts'

/** OpenAI Responses over SSE. */
export const responsesWire = createWire<ResponsesEvent, ResponsesOptions>({
  name: 'responses',
  project: createResponsesAnswer,
  framing: {
    ...sse<ResponsesEvent>({ event: ({ type }) => type, done: '[DONE]' }),
    // An event: clients that wait for one do not count comments.
    keepAlive: 'event: keepalive\ndata: {"type":"keepalive"}\n\n',
  },
})
