/**
 * Anthropic Messages over SSE. A message is the answer of one run: its id is `msg_<run>`. `messages-json.ts` returns the same as one JSON.
 *
 * | part | event |
 * |---|---|
 * | `run-start` | `message_start`, at once; the usage is not known yet: 0 |
 * | `text-*` of the answer | a `text` block from its first delta on; parallel branches one after the other; structured output in one piece, when it is complete and valid (`held-text.ts`) |
 * | `reasoning-*` of the answer | a `thinking` block; at its end a `signature_delta` with a token of this server |
 * | `tool-input-*`, `tool-call` of a client's tool | `tool_use`, `input_json_delta` |
 * | its `tool-result` with the outcome `handed-over` | `content_block_stop`; any other outcome: the `error` event |
 * | `tool-call` that the server or the provider runs, in the answer | `mcp_tool_use` with its whole input; `server_name` is the agent |
 * | its final `tool-result` | `mcp_tool_result` with the truncated output |
 * | `respond` of a router, calls inside of tools, `preliminary` results | dropped |
 * | `step-reset` | open texts stop, the server's calls fail; a client's call that was begun: the `error` event |
 * | `suspend` (not resumed since) for approvals, in a run that hands over its client's calls | a text with words for people (`openai-waiting.ts`), `end_turn` |
 * | `suspend` for anything else | the `error` event |
 * | `answer-end` | `message_delta` with the usage and `end_turn`, `tool_use`, `refusal`, or `max_tokens` if the client's own limit was hit; `message_stop` |
 * | `answer-end` of an answer that is not complete, `run-end` before it | the `error` event: `max_output_tokens`, `max_steps`, `budget_exceeded`, `timed_out`, `aborted`, `rate_limit_error`, `overloaded_error` if the server was interrupted, else `run_failed` |
 * | `source`, `file`, `reasoning-file`, `custom`, `data` | dropped: clients throw on blocks that they do not know |
 * | all others | dropped: they are for monitoring |
 *
 * One block is open at a time (`message-blocks.ts`), and none is empty. A message without any has the text `(no text)`.
 */
import { sse } from '../framing/text-frames.ts'
import { createWire } from '../wire.ts'
import type { MessagesEvent } from './message-blocks.ts'
import { createMessagesAnswer, type MessagesOptions } from './messages-answer.ts'

/** Anthropic Messages over SSE. */
export const messagesWire = createWire<MessagesEvent, MessagesOptions>({
  name: 'messages',
  project: createMessagesAnswer,
  framing: {
    ...sse<MessagesEvent>({ event: ({ type }) => type }),
    // An event: clients that wait for one do not count comments.
    keepAlive: 'event: ping\ndata: {"type":"ping"}\n\n',
  },
})
