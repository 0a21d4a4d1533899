/** Reads the events of a Dify stream, and finds the thinking of models inside of its text. */

/** Which other fields an event has depends on its kind and on the server's version. */
export type DifyEvent = Record<string, any> & { event: string }

/** Reads events however their bytes are cut. Skips pings and lines that are not events. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<DifyEvent, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) yield* eventOf(line)
  }
  yield* eventOf(rest)
}

function* eventOf(line: string): Generator<DifyEvent, void> {
  try {
    const event = line.startsWith('data:') ? (JSON.parse(line.slice('data:'.length)) as DifyEvent | null) : null
    if (typeof event?.event === 'string') yield event
  } catch {
    // If it was the last event, the step fails because that is missing.
  }
}

/** Separates `<think>…</think>` from the text. A tag may be cut between two deltas; a call without a delta gives what is held back. */
export function createThinkSplitter() {
  let kind: 'text' | 'thinking' = 'text'
  let held = ''
  return (delta?: string) => {
    const out = { text: '', thinking: '' }
    const pieces = (held + (delta ?? '')).split(/(<\/?think>|<\/?t?h?i?n?k?$)/u)
    held = ''
    for (const [i, piece] of pieces.entries()) {
      if (piece === '<think>' || piece === '</think>') kind = piece === '<think>' ? 'thinking' : 'text'
      else if (i % 2 === 1 && delta !== undefined) held = piece
      else out[kind] += piece
    }
    return out
  }
}
