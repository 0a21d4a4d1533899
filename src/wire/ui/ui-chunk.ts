/** One chunk of the AI SDK UI message stream. Undefined fields are not sent. */
export type UiChunk = { type: string; [field: string]: unknown }

/** Options of a UI message stream. */
export interface UiOptions {
  /** The client is AI SDK 7: it understands `reset-step` and other chunks that version 6 does not know. */
  ui7: boolean
}

const finishReasons = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'])

/** Both AI SDK versions fail on an unknown reason, so it becomes `other`. */
export function toFinishReason(reason: string, ui7: boolean): string {
  return finishReasons.has(reason) || (ui7 && reason === 'interrupted') ? reason : 'other'
}

/** The contents of a file as a URL. */
export function toFileUrl(mediaType: string, data: string | { type: 'url'; url: string }): string {
  return typeof data === 'string' ? `data:${mediaType};base64,${data}` : data.url
}
