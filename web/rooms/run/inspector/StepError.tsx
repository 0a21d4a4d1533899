/** Why a step failed: its whole error, with what only the log has. */
import type { EntryOf } from '../../../../src/part/entry.ts'
import { Copy } from '../../../kit/Copy.tsx'
import { ErrorNote } from '../../../kit/ErrorNote.tsx'
import { useEntry } from '../data/use-entries.ts'
import type { StepNode } from '../../../../src/fold/step-tree.ts'
import type { Room } from '../use-room.ts'
import css from './Inspector.module.css'

export function StepError({ room, node }: { room: Room; node: StepNode }) {
  const entry = useEntry(room.windows, node.step.end === undefined ? undefined : node.step.to)
  const { error = node.step.error } = (entry?.type === 'step-finish' ? entry : {}) as Partial<EntryOf<'step-finish'>>
  if (error === undefined) return null
  return (
    <>
      <ErrorNote error={error} />
      {error.detail !== undefined && (
        <section className={css.result}>
          <h4>
            cause <Copy text={error.detail} label="Copy the cause" />
          </h4>
          <pre className={css.pre}>{error.detail}</pre>
        </section>
      )}
      {error.status !== undefined && <p className={css.note}>HTTP status {error.status}</p>}
    </>
  )
}
