/**
 * AG-UI 1.0, as `@ag-ui/client` and CopilotKit read it. One AG-UI run for a run; a run that was suspended and continued has one for each part,
 * because the client has sent a request for each, with an id of its own (`labels.runId`).
 *
 * | part | event |
 * |---|---|
 * | `run-start` | RUN_STARTED with the thread and the client's run id (ours if it sent none; ours is in `metadata.millrace.runId` anyway); MESSAGES_SNAPSHOT; STATE_SNAPSHOT if the input has a `state` |
 * | `resume` | RUN_STARTED with the id of the request that continued the run, MESSAGES_SNAPSHOT for a client that joins there, and STATE_SNAPSHOT if it brought a `state`. Nothing while the AG-UI run is still open (`live`) |
 * | `step-start`, `step-finish` | STEP_STARTED, STEP_FINISHED with the path below `main` as `stepName` and `usage` and `finishReason` in its `metadata`: steps of the pipeline, and model calls of the answer; not tool calls, which have events of their own, nor steps inside a tool |
 * | `text-*` of the answer | TEXT_MESSAGE_START with a new id, CONTENT, END. Structured output comes as one message when it is complete and valid (`held-text.ts`) |
 * | `reasoning-*` of the answer | REASONING_START, REASONING_MESSAGE_START, CONTENT, END, REASONING_END. The provider's metadata (its signature) is a REASONING_ENCRYPTED_VALUE, as JSON |
 * | `tool-input-*`, `tool-call` of the answer | TOOL_CALL_START, ARGS, END; ARGS `{}` for no arguments. The nth call of a conversation with an id that its provider used before is `<id>~<n>`. All calls of a model call have the same `parentMessageId`: its text, if it has one before them, and its first text after them. Signatures as for reasoning |
 * | `tool-result` of a call that was sent | TOOL_CALL_RESULT with `isError` and `outcome` in its `metadata` if it failed. Dropped: preliminary results, a call that was handed over, and the client's own results, unless `live` or `joins` |
 * | `step-start` of an agent that the model has called as a tool | SUBAGENT_STARTED with the agent as its name and the call as its parent; once more in the AG-UI run that continues it. What the agent says and calls, and its steps, have its `subagentRunId`; its messages are `<subagent id>:<n>` and its calls `<id>~<n>.<run>`, which no call of the conversation has |
 * | `tool-result` of such a call | what is open in it is closed; SUBAGENT_FINISHED with the result, or SUBAGENT_ERROR; then TOOL_CALL_RESULT. When the run waits: SUBAGENT_FINISHED `suspended`, with the interrupts that it raised itself. A stop, a failure or a crash: SUBAGENT_ERROR |
 * | a handoff | no subagent: the agent that takes over gives the answer, and the result of the run is its text |
 * | `request` tool, approval | for a step before the answer (a router) the call is sent first. At `suspend` an approval becomes an interrupt, a tool one of `pendingToolCallIds` |
 * | `request` approval that needs a role which the reader does not have, and its `response` | CUSTOM `waiting` with the request, the tool and the roles, then also the `outcome`; no interrupt |
 * | `request` input | an interrupt at `suspend`, with its own reason, message and schema |
 * | `response` | dropped: its effects are in the log |
 * | `data` of any step before `after` | CUSTOM with its own name |
 * | `source`, `file`, `reasoning-file`, `custom` of the answer | CUSTOM with the name of the part: AG-UI 1.0 has no event for them, and messages of an agent are text |
 * | `cli-output` of the answer | RAW |
 * | `prompt` | CUSTOM `prompt` with the whole prompt if `traces` is set; else dropped |
 * | `usage` | RUN_FINISHED and RUN_ERROR have the sum for each model in `usage` |
 * | `message` of a request that reads on from there | RUN_FINISHED: the terminal event. For the reader whose request it was: RUN_STARTED with the id of that request |
 * | `message` otherwise, and with `live` | CUSTOM `message`: content, sender, how long it waited, `outcome` |
 * | `answer-end` | RUN_FINISHED with `outcome` success, and the text of the last model call with text as `result` (of each answer, if there are several): the terminal event |
 * | `suspend` (not resumed since) | RUN_FINISHED with `outcome` interrupt, or success with `pendingToolCallIds`: the terminal event. With `live`, nothing while only client tools, and approvals of others, are pending |
 * | `run-end` before `answer-end` | completed: RUN_FINISHED; if no step answered, with the output as `result`, and a string also as text; aborted: RUN_FINISHED `cancelled` (older clients: RUN_ERROR `cancelled`); else: RUN_ERROR with our code |
 * | `step-reset` of sent output | RUN_ERROR: sent output cannot be retracted. That of a subagent is closed, and other output follows |
 * | a failure that is not in the log | RUN_ERROR |
 * | `stream-start`, `response-metadata`, `finish`, `raw`, `error`, `tool-approval-request` of a model | dropped: not for clients; a failure that ends the run is in `run-end`, an approval that can be answered in `request` |
 * | `retry`, `warning`, `session-info` | dropped: they are for monitoring |
 * | everything else outside the answer | dropped |
 *
 * Older clients get the outer call of an agent alone. Before a terminal event all open items are closed, inner steps first. A call whose arguments were cut off gets a result with this reason.
 */
import { objects } from '../framing/objects.ts'
import { sse } from '../framing/text-frames.ts'
import { createWire } from '../wire.ts'
import type { AgUiEvent, AgUiOptions } from './ag-ui-event.ts'
import { projectAgUi } from './ag-ui-projection.ts'

/** AG-UI over SSE. */
export const agUiWire = createWire<AgUiEvent, AgUiOptions>({
  name: 'ag-ui',
  project: projectAgUi,
  framing: sse(),
  showsAbort: true,
  showsHistory: true,
})

/** AG-UI as objects, for transports with messages of their own. */
export const agUiObjectsWire = createWire<AgUiEvent, AgUiOptions, AgUiEvent[]>({
  name: 'ag-ui objects',
  project: projectAgUi,
  framing: objects(),
  showsAbort: true,
  showsHistory: true,
})
