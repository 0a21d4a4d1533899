/** What a stream says, however its texts are cut into frames. */

type Frame = Record<string, any>

/** Frames in order; between two others, those that carry a piece of text are one for each text. */
export function contentOf(format: string, body: string): unknown {
  if (format === 'text') return body
  const frames = body
    .split('\n')
    .map((line) => (line.startsWith('data: ') ? line.slice(6) : line))
    .filter((line) => line !== '' && !/^(?:id|event|retry):/u.test(line))
    .map((line): Frame | string => (line.startsWith('{') ? (JSON.parse(line) as Frame) : line))
  const content: unknown[] = []
  let texts = new Map<string, string>()
  /** Where the part of each called agent stands. Those before it are cut by time, and replaced by the next. */
  const agents = new Map<unknown, number>()
  const flush = () => {
    content.push(...[...texts].filter(([, text]) => text !== '').sort(([a], [b]) => (a < b ? -1 : 1)))
    texts = new Map()
  }
  for (const frame of frames) {
    if (typeof frame !== 'string' && frame['type'] === 'data-agent') {
      const before = agents.get(frame['id'])
      // In the place of the first one: what stands between two of them is the same.
      if (before !== undefined) content[before] = frame
      else {
        flush()
        agents.set(frame['id'], content.push(frame) - 1)
      }
      continue
    }
    const piece = typeof frame === 'string' ? undefined : takePiece(frame)
    if (piece === undefined) {
      flush()
      content.push(frame)
    } else {
      const block = JSON.stringify(frame)
      texts.set(block, (texts.get(block) ?? '') + piece)
    }
  }
  flush()
  return content
}

/** Takes its piece of text out of a frame, and what says where it was cut. */
function takePiece(frame: Frame): string | undefined {
  // Responses repeat a whole text at its end.
  if (/^response\..*(?<!delta)$/u.test(String(frame['type']))) return undefined
  const delta: unknown = frame['choices']?.[0]?.delta ?? frame['delta'] ?? frame['inputTextDelta']
  const holder = [frame, delta, (delta as Frame | undefined)?.['tool_calls']?.[0]?.function as unknown]
  for (const each of holder) {
    if (typeof each !== 'object' || each === null) continue
    for (const key of [
      'delta',
      'inputTextDelta',
      'content',
      'reasoning_content',
      'arguments',
      'text',
      'thinking',
      'partial_json',
    ]) {
      const piece = (each as Frame)[key] as unknown
      if (typeof piece !== 'string' || (each === frame && key !== 'delta' && key !== 'inputTextDelta')) continue
      ;(each as Frame)[key] = ''
      for (const place of ['seq', 'firstSeq', 'timestamp', 'sequence_number']) delete frame[place]
      return piece
    }
  }
  return undefined
}
