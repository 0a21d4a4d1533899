/** `millrace/wire`: a run's entries as each protocol's events and text, and the parts of a protocol of your own. Browser-safe. */
export { agUiObjectsWire, agUiWire } from './wire/ag-ui/ag-ui.ts'
export type { AgUiEvent, AgUiMessage, AgUiOptions } from './wire/ag-ui/ag-ui-event.ts'
export { openaiWire } from './wire/openai/openai.ts'
export { partsSseWire, partsWire, type PartsEvent, type PartsOptions } from './wire/parts/parts.ts'
export { textWire } from './wire/text/text.ts'
export { uiWire } from './wire/ui/ui.ts'
export type { UiAgent, UiAgentTool } from './wire/ui/ui-agents.ts'
export type { OpenAiEvent } from './wire/openai/openai-chunk.ts'
export type { OpenAiOptions } from './wire/openai/openai-output.ts'
export type { UiChunk, UiOptions } from './wire/ui/ui-chunk.ts'
export { fromClientMessages, toolAnswers, toUiMessages } from './wire/ui/ui-message.ts'
export { createWire } from './wire/wire.ts'
export { ndjson } from './wire/framing/text-frames.ts'
export { objects } from './wire/framing/objects.ts'
export { plain } from './wire/framing/text-frames.ts'
export { sse, type SseOptions } from './wire/framing/text-frames.ts'
export type {
  CreateProjection,
  Encoder,
  Frames,
  Framing,
  Piece,
  Projection,
  Sink,
  Wire,
  WireContext,
  WireParts,
  WireState,
  WireTraits,
} from './wire/wire.ts'
