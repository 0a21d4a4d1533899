/** What a step has said and called. */
import { useMemo } from 'react'
import { progressWords } from '../../../../src/fold/progress-words.ts'
import type { Entry } from '../../../../src/part/entry.ts'
import { answerWords } from '../../../kit/answer-words.ts'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { duration } from '../../../kit/format.ts'
import { JsonTree } from '../../../kit/JsonTree.tsx'
import { Markdown } from '../../../kit/Markdown.tsx'
import { Skeleton } from '../../../kit/Skeleton.tsx'
import type { StepNode } from '../../../../src/fold/step-tree.ts'
import type { Handles } from '../use-handles.ts'
import type { Room } from '../use-room.ts'
import { parsed, piecesOf, type ContentPiece } from './content.ts'
import { Result } from './Result.tsx'
import { useStepEntries } from './use-step-entries.ts'
import css from './Inspector.module.css'

interface Props {
  room: Room
  node: StepNode
  /** Only what it says to people. */
  textOnly?: boolean
}

export function StepPieces({ room, node, textOnly = false }: Props) {
  const { entries, error, retry } = useStepEntries(room, node)
  const pieces = useMemo(() => entries && piecesOf(entries), [entries])
  if (error !== undefined) return <ErrorNote error={error} onRetry={retry} />
  if (pieces === undefined) return <Skeleton rows={3} />
  const shown = textOnly ? pieces.filter(({ kind }) => kind === 'text') : pieces
  if (shown.length === 0 && !textOnly) return <p className={css.nothing}>Nothing so far.</p>
  return shown.map((piece) => <PieceView key={`${piece.kind}${piece.id}`} piece={piece} handles={room.handles} />)
}

function PieceView({ piece, handles }: { piece: ContentPiece; handles: Handles }) {
  switch (piece.kind) {
    case 'text':
      return (
        <div className={css.text} data-piece="text" data-open={piece.end === undefined || undefined}>
          <Markdown text={piece.text} isOpen={piece.end === undefined} />
        </div>
      )
    case 'reasoning':
      return (
        <details className={css.reasoning} open={piece.end === undefined}>
          <summary>{piece.end === undefined ? 'Thinking…' : `Thought for ${duration(piece.end - piece.at)}`}</summary>
          <Markdown text={piece.text} isOpen={piece.end === undefined} />
        </details>
      )
    case 'call': {
      const input = parsed(piece.input)
      return (
        <div className={css.call} data-piece="call">
          <h4>{piece.name}</h4>
          {input !== undefined ? (
            <JsonTree value={input} name="arguments" />
          ) : (
            // The step of a tool has its result only: the model's call has the arguments.
            piece.input.trim() !== '' && <pre className={css.pre}>{piece.input}</pre>
          )}
          {piece.result && <Result entry={piece.result} handle={handles.get(piece.result.seq)} />}
        </div>
      )
    }
    case 'other':
      return <Other entry={piece.entry} />
  }
}

function Other({ entry }: { entry: Entry }) {
  if (entry.type === 'error') return <ErrorNote error={entry.error} />
  if (entry.type === 'retry') {
    return (
      <p className={css.note}>
        Tried again{entry.delay > 0 ? ` after ${duration(entry.delay)}` : ''}
        {entry.model === undefined ? '' : ` with ${entry.model}`}: {entry.error.message} <code>{entry.error.code}</code>
      </p>
    )
  }
  if (entry.type === 'response') {
    return (
      <div className={css.call} data-piece="response">
        <h4>response</h4>
        <p className={css.note}>{answerWords(entry.answer, entry.by)}</p>
        <EntryFields entry={entry} />
      </div>
    )
  }
  const progress = progressWords(entry)
  if (progress !== undefined) return <p className={css.note}>{progress}</p>
  if (entry.type === 'warning') return <p className={css.note}>{entry.message}</p>
  if (entry.type === 'cli-output') return <pre className={css.pre}>{entry.raw}</pre>
  if (entry.type === 'source' && entry.sourceType === 'url') {
    const isLink = /^https?:/u.test(entry.url)
    return (
      <p className={css.note}>
        source{' '}
        {isLink ? (
          <a href={entry.url} target="_blank" rel="noopener noreferrer">
            {entry.title ?? entry.url}
          </a>
        ) : (
          (entry.title ?? entry.url)
        )}
      </p>
    )
  }
  return (
    <div className={css.call}>
      <h4>{entry.type}</h4>
      <EntryFields entry={entry} />
    </div>
  )
}

function EntryFields({ entry }: { entry: Entry }) {
  const { seq: _, timestamp: __, step: ___, ...rest } = entry
  return <JsonTree value={rest} />
}
