/** One chunk of the AI SDK UI message stream. Undefined fields are not sent. */
export type UiChunk = { type: string; [field: string]: unknown }

/** Returns the frame of a chunk, or `''` while the encoder skips entries. */
export type Send = (chunk: UiChunk) => string

export function toFrame(chunk: UiChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

export const doneFrame = 'data: [DONE]\n\n'

/** The frame of a delta up to its text. The whole is `start + JSON.stringify(delta) + deltaEnd`, which is fast per token. */
export function deltaStart(type: string, idField: string, id: string, textField: string): string {
  return `data: {"type":"${type}","${idField}":${JSON.stringify(id)},"${textField}":`
}

export const deltaEnd = '}\n\n'

const finishReasons = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'])

/** Both AI SDK versions fail on an unknown reason, so it becomes `other`. */
export function toFinishReason(reason: string, ui7: boolean): string {
  return finishReasons.has(reason) || (ui7 && reason === 'interrupted') ? reason : 'other'
}

/** The contents of a file as a URL. */
export function toFileUrl(mediaType: string, data: string | { type: 'url'; url: string }): string {
  return typeof data === 'string' ? `data:${mediaType};base64,${data}` : data.url
}
