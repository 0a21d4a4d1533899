/**
 * AI SDK UI message stream v1 over SSE, as `useChat` of `ai` 6 and 7 reads it. One assistant message per run, with the run's
 * id. Version 6 fails on unknown chunk types and keys, so chunks that only version 7 knows (marked 7) are sent only with
 * `ui7`.
 *
 * | part | chunk |
 * |---|---|
 * | `run-start`, `resume` | `start` with the run's id, at once; a second one with the same id changes nothing |
 * | `step-start`, `step-finish` of a model call of the answer | `start-step`, `finish-step`; calls that overlap (parallel answers) share one step, because the clients look for open parts in the current step only |
 * | `text-*`, `reasoning-*` of the answer | the same; citations on `text-end`: 7. Structured output comes as one text block when it is complete and valid (`held-text.ts`); until then `data-output` shows the partial value |
 * | `tool-input-start`, `-delta`; `-end` | the same; dropped: `tool-call` implies it |
 * | `tool-call` | `tool-input-available`, or `tool-input-error` when the arguments are not valid JSON |
 * | `tool-result` of a call that was sent | `tool-output-available`, `-error` or `-denied`; dropped when handed over: the client provides it |
 * | `request` approval; tool; input | `tool-approval-request`; dropped: the client answers calls without output; `data-waiting` with the request's id: reason, message, schema and metadata, then also the `outcome`; `POST /api/runs/<id>/requests/<request>` answers it. For a step before the answer (a router) the call is sent first, as `tool-input-available` |
 * | `request` approval that needs a role which the reader does not have, and its `response` | `data-waiting` with the request's id: tool call, tool and roles, then also the `outcome` |
 * | `response` to an approval | `tool-approval-response`: 7; dropped for 6, the outcome follows |
 * | all entries of an agent that the model has called as a tool | `data-agent` (`ui-agents.ts`) with the path of the call as its id, which later ones replace: agent, path, status, tools, and the end of what it has said; at most four a second, and one at its end before the tool's output. What it says and calls is no part of the message otherwise |
 * | `request` approval or tool of a called agent | a step of its own, with the inner call as `tool-input-available` and `providerMetadata.millrace`: `agents`, those that lead to it, and `parentToolCallId`, the call of the agent that asks. `useChat` then sends the answer by itself although the outer call is open. The call is dropped from messages that come back |
 * | `source`, `file` of the answer | `source-url` or `source-document`, `file` with a URL or data URL |
 * | `reasoning-file`, `custom` of the answer | the same: 7; dropped for 6 |
 * | `data` of any step before `after` | `data-<name>` |
 * | `message` of a request that reads on from there | `finish` `stop`, `[DONE]`: the terminal frame. For the reader whose request it was: `start` with the id `<run>.<seq>` |
 * | `message` otherwise | `data-message`, which stays if it was delivered: content, sender, how long it waited, `outcome` |
 * | `answer-end` | `finish` with usage, `[DONE]`: the terminal frame |
 * | `suspend` (not resumed since) | `finish` `tool-calls`, `[DONE]`: the terminal frame |
 * | `run-end` before `answer-end` | completed: `finish`; if no step answered, preceded by the output as `data-output`, and a string also as text; aborted: `abort`; else: `error`; then `[DONE]` |
 * | `step-reset` of sent output | `reset-step` (7) if it retracts exactly that; else `error`, `[DONE]`: never a second version |
 * | `stream-start`, `response-metadata`, `finish`, `raw`, `error`, `tool-approval-request` of a model | dropped: not for clients; a failure that ends the run is in `run-end`, an approval that can be answered in `request` |
 * | `prompt`, `usage`, `retry`, `warning`, `session-info`, `cli-output` | dropped: they are for monitoring |
 * | everything but `data` outside the answer | dropped |
 */
import { sse } from '../framing/text-frames.ts'
import { createWire } from '../wire.ts'
import type { UiChunk } from './ui-chunk.ts'
import { projectUi } from './ui-projection.ts'

/** The AI SDK UI message stream over SSE. */
export const uiWire = createWire({
  name: 'ui',
  project: projectUi,
  framing: sse<UiChunk>({ headers: { 'x-vercel-ai-ui-message-stream': 'v1' }, done: '[DONE]' }),
  showsAbort: true,
})
