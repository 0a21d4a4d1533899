/** What a step has said and called, put together from its entries. */
import { progressWords } from '../../../../src/fold/progress-words.ts'
import type { Entry, EntryOf } from '../../../../src/part/entry.ts'

export type ContentPiece =
  | { kind: 'text' | 'reasoning'; id: string; text: string; at: number; end: number | undefined }
  | CallPiece
  | { kind: 'other'; id: string; entry: Entry }

interface CallPiece {
  kind: 'call'
  id: string
  name: string
  input: string
  isOpen: boolean
  result?: EntryOf<'tool-result'>
}

const shown: ReadonlySet<string> = new Set([
  'source',
  'file',
  'reasoning-file',
  'error',
  'warning',
  'retry',
  'cli-output',
  'request',
  'response',
])

/** Entries of one step, in order; deltas may be merged. */
export function piecesOf(entries: readonly Entry[]): ContentPiece[] {
  const pieces: ContentPiece[] = []
  const open = new Map<string, ContentPiece>()
  const add = <P extends ContentPiece>(key: string, piece: P): P => {
    pieces.push(piece)
    open.set(key, piece)
    return piece
  }
  const call = (id: string, name: string): CallPiece => {
    const known = open.get(`call ${id}`)
    if (known?.kind === 'call') return known
    return add(`call ${id}`, { kind: 'call', id, name, input: '', isOpen: true })
  }
  for (const entry of entries) {
    switch (entry.type) {
      case 'text-start':
      case 'reasoning-start': {
        const kind = entry.type === 'text-start' ? 'text' : 'reasoning'
        add(`${kind} ${entry.id}`, { kind, id: entry.id, text: '', at: entry.timestamp, end: undefined })
        break
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const kind = entry.type === 'text-delta' ? 'text' : 'reasoning'
        const piece = open.get(`${kind} ${entry.id}`)
        if (piece !== undefined && 'text' in piece) piece.text += entry.delta
        break
      }
      case 'text-end':
      case 'reasoning-end': {
        const piece = open.get(`${entry.type === 'text-end' ? 'text' : 'reasoning'} ${entry.id}`)
        if (piece !== undefined && 'text' in piece) piece.end = entry.timestamp
        break
      }
      case 'tool-input-start':
        call(entry.id, entry.toolName)
        break
      case 'tool-input-delta': {
        const piece = open.get(`call ${entry.id}`)
        if (piece?.kind === 'call') piece.input += entry.delta
        break
      }
      case 'tool-call':
        Object.assign(call(entry.toolCallId, entry.toolName), { input: entry.input, isOpen: false })
        break
      case 'tool-result':
        call(entry.toolCallId, entry.toolName).result = entry
        break
      case 'data': {
        const isProgress = progressWords(entry) !== undefined
        const known = isProgress ? open.get('progress') : undefined
        // A later one takes its place.
        if (known?.kind === 'other') known.entry = entry
        else add(isProgress ? 'progress' : String(entry.seq), { kind: 'other', id: String(entry.seq), entry })
        break
      }
      default:
        if (shown.has(entry.type)) pieces.push({ kind: 'other', id: String(entry.seq), entry })
    }
  }
  return pieces
}

/** JSON that may be cut off: undefined if it is not whole. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
