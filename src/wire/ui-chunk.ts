/** One chunk of the AI SDK UI message stream, as JSON. Fields that are undefined are not sent. */
export type UiChunk = { type: string; [field: string]: unknown }

/** Sends a chunk: its frame, or `''` while the encoder only advances. */
export type Send = (chunk: UiChunk) => string

export function toFrame(chunk: UiChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

export const doneFrame = 'data: [DONE]\n\n'

/**
 * The frame of a delta up to its text, for a frame that costs one concatenation a token:
 * `start + JSON.stringify(delta) + deltaEnd`.
 */
export function deltaStart(type: string, idField: string, id: string, textField: string): string {
  return `data: {"type":"${type}","${idField}":${JSON.stringify(id)},"${textField}":`
}

export const deltaEnd = '}\n\n'

const finishReasons = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'])

/** The enum is closed in both versions: an unknown reason would be fatal to the client. */
export function toFinishReason(reason: string, ui7: boolean): string {
  return finishReasons.has(reason) || (ui7 && reason === 'interrupted') ? reason : 'other'
}

/** Contents of a file as a URL. */
export function toFileUrl(mediaType: string, data: string | { type: 'url'; url: string }): string {
  return typeof data === 'string' ? `data:${mediaType};base64,${data}` : data.url
}
