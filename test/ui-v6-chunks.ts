/**
 * The chunks that the first AI SDK 6 (6.0.0) takes, with every field that it knows: its schema is strict, so one more is
 * fatal to it. Later 6 versions are lenient about fields, not about types.
 */
const metadata = ['providerMetadata']
const tool = ['providerExecuted', 'dynamic']
export const v6Chunks: Readonly<Record<string, readonly string[]>> = {
  start: ['messageId', 'messageMetadata'],
  finish: ['finishReason', 'messageMetadata'],
  'message-metadata': ['messageMetadata'],
  'start-step': [],
  'finish-step': [],
  abort: [],
  error: ['errorText'],
  'text-start': ['id', ...metadata],
  'text-delta': ['id', 'delta', ...metadata],
  'text-end': ['id', ...metadata],
  'reasoning-start': ['id', ...metadata],
  'reasoning-delta': ['id', 'delta', ...metadata],
  'reasoning-end': ['id', ...metadata],
  'tool-input-start': ['toolCallId', 'toolName', 'title', ...tool],
  'tool-input-delta': ['toolCallId', 'inputTextDelta'],
  'tool-input-available': ['toolCallId', 'toolName', 'input', 'title', ...tool, ...metadata],
  'tool-input-error': ['toolCallId', 'toolName', 'input', 'errorText', 'title', ...tool, ...metadata],
  'tool-output-available': ['toolCallId', 'output', 'preliminary', ...tool],
  'tool-output-error': ['toolCallId', 'errorText', ...tool],
  'tool-output-denied': ['toolCallId'],
  'tool-approval-request': ['approvalId', 'toolCallId'],
  'source-url': ['sourceId', 'url', 'title', ...metadata],
  'source-document': ['sourceId', 'mediaType', 'title', 'filename', ...metadata],
  file: ['url', 'mediaType', ...metadata],
}

/** What 6.0.0 would refuse about this chunk, if anything. */
export function v6Fault(chunk: Record<string, unknown>): string | undefined {
  const { type, ...fields } = chunk
  const known = String(type).startsWith('data-') ? ['id', 'data', 'transient'] : v6Chunks[String(type)]
  if (!known) return `type ${String(type)}`
  const unknown = Object.keys(fields).find((key) => !known.includes(key))
  return unknown && `${String(type)}.${unknown}`
}
