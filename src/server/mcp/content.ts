/** A run that has ended as the result of `tools/call`. Pure, and a function of the run alone: the same bytes at every poll. */
import type { RunView } from '../../fold/run-view.ts'

export type Era = 'modern' | 'legacy'

/** A block of content, as MCP has it. */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; text: string } }
  | { type: 'resource_link'; uri: string; name: string; mimeType?: string; size?: number }

export interface CallResult {
  content: ContentBlock[]
  /** Of modern clients any JSON, of legacy ones an object: another value stands in `{result}`. */
  structuredContent?: unknown
  isError?: true
  _meta: { 'millrace/run': string; 'millrace/thread': string }
}

export interface CallResultOptions {
  era: Era
  /** The agent had an `output` when the run started (see `readStored`). */
  hasOutput: boolean
  /** `metadata.mcp.threads`: the text ends with the thread's id. */
  showsThread?: boolean
}

/** Of a run that has ended, in any way. `threadId` of the view: as the caller names it. */
export declare function toCallResult(view: RunView, options: CallResultOptions): CallResult

/** The `outputSchema` of a tool. Legacy clients demand an object: of another schema it is that of `{result}`. */
export declare function toOutputSchema(schema: Record<string, unknown>, era: Era): Record<string, unknown>
