/** Entries as they are stored. */
import { useState } from 'react'
import { mergeDeltas } from '../../../../src/part/entry.ts'
import { Button } from '../../../kit/Button.tsx'
import { Skeleton } from '../../../kit/Skeleton.tsx'
import { useEntry } from '../data/use-entries.ts'
import type { StepNode } from '../../../../src/fold/step-tree.ts'
import { nameOf } from '../selection.ts'
import type { Room } from '../use-room.ts'
import { Large } from './Result.tsx'
import { Summarized } from './Summarized.tsx'
import { Told } from './Told.tsx'
import { useStepEntries } from './use-step-entries.ts'
import css from './Inspector.module.css'

export function EntryView({ room, seq, node }: { room: Room; seq: number; node: StepNode | undefined }) {
  const stored = useEntry(room.windows, room.snapshot.isLoaded ? seq : undefined)
  if (stored === undefined) return <Skeleton rows={4} />
  return (
    <div className={css.entry}>
      <header className={css.head}>
        <h2>
          #{stored.seq} {stored.type} <small>{stored.step}</small>
        </h2>
      </header>
      <div className={css.panel}>
        <div className={css.entryActions}>
          {node && <Button onClick={() => room.select(nameOf(node))}>Show the step</Button>}
          {room.at !== seq && <Button onClick={() => room.goTo(seq)}>Rewind to here</Button>}
        </div>
        {stored.type === 'message' && <Told entry={stored} />}
        {stored.type === 'summarized' && <Summarized entry={stored} />}
        <Large value={stored} name={`entry-${stored.seq}`} />
      </div>
    </div>
  )
}

const page = 50

export function RawEntries({ room, node }: { room: Room; node: StepNode }) {
  const { entries } = useStepEntries(room, node)
  const [count, setCount] = useState(page)
  if (entries === undefined) return <Skeleton rows={6} />
  const merged = mergeDeltas(entries)
  return (
    <>
      {merged.slice(0, count).map((entry) => (
        <details key={entry.seq} className={css.raw}>
          <summary>
            <span className="num">#{entry.seq}</span> {entry.type}
          </summary>
          <Large value={entry} name={`entry-${entry.seq}`} />
        </details>
      ))}
      {merged.length > count && (
        <Button look="quiet" onClick={() => setCount(count + 10 * page)}>
          {`${merged.length - count} more`}
        </Button>
      )}
    </>
  )
}
