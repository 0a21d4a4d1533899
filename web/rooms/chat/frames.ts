/** A run's entries as the frames that each protocol sends for them, made by the code that the server sends them with. */
import type { Entry } from '../../../src/part/entry.ts'
import { agUiWire } from '../../../src/wire/ag-ui/ag-ui.ts'
import { openaiWire } from '../../../src/wire/openai/openai.ts'
import { partsWire } from '../../../src/wire/parts/parts.ts'
import { textWire } from '../../../src/wire/text/text.ts'
import { uiWire } from '../../../src/wire/ui/ui.ts'
import type { Encoder, Wire } from '../../../src/wire/wire.ts'

export interface WireFrame {
  /** Counts from 0. */
  index: number
  /** ms since the run's start. */
  at: number
  text: string
  /** No frame: what happens to the transfer here. */
  note?: string
}

export interface WireFrames {
  /** Grows; the list itself stays the same. */
  readonly list: readonly WireFrame[]
  apply(entry: Entry): void
}

const wires: ReadonlyMap<string, { wire: Wire; splits: string | undefined }> = new Map([
  ['ui', { wire: uiWire, splits: '\n\n' }],
  ['openai', { wire: openaiWire, splits: '\n\n' }],
  ['ag-ui', { wire: agUiWire, splits: '\n\n' }],
  ['text', { wire: textWire, splits: undefined }],
  ['log', { wire: partsWire, splits: '\n' }],
])

export function createFrames(name: string): WireFrames {
  const { wire, splits } = wires.get(name) ?? wires.get('ui')!
  const list: WireFrame[] = []
  const before: Entry[] = []
  let encoder: Encoder = wire.createEncoder()
  let start: number | undefined

  function add(text: string, at: number): void {
    for (const piece of splits === undefined ? [text] : text.split(splits)) {
      if (piece.trim() !== '' || (splits === undefined && piece !== ''))
        list.push({ index: list.length, at, text: piece })
    }
  }

  function apply(entry: Entry): void {
    start ??= entry.timestamp
    const at = entry.timestamp - start
    if (entry.type === 'resume' && wire.showsLog !== true) {
      encoder = wire.createEncoder({ resumedAt: entry.seq })
      for (const each of before) encoder.skip(each)
      if (list.length > 0) note('Answered: the run goes on in a new stream.', at)
    }
    before.push(entry)
    const { state } = encoder
    add(encoder.encode(entry), at)
    if (state === 'open' && encoder.state === 'broken') note('Cut off: this protocol has no frame for a failure.', at)
  }

  function note(words: string, at: number): void {
    list.push({ index: list.length, at, text: '', note: words })
  }

  return { list, apply }
}

/** What a frame carries, for the tree: its JSON, or its text. */
export function payloadOf(text: string): unknown {
  const data = text.startsWith('data:') ? text.slice(5).trim() : text
  try {
    return JSON.parse(data) as unknown
  } catch {
    return data
  }
}
