/** Two runs beside each other. */
import { useQuery } from '../../data/query.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useKeys } from '../../shell/keys.ts'
import { useCompared } from './compared.ts'
import { FirstDifference } from './FirstDifference.tsx'
import { Picker } from './Picker.tsx'
import { StepPairs } from './StepPairs.tsx'
import { Summary } from './Summary.tsx'
import { TextPair } from './TextPair.tsx'
import { Timing } from './Timing.tsx'
import { ToolPairs } from './ToolPairs.tsx'
import css from './Compare.module.css'

const views = [
  [undefined, 'Steps', StepPairs],
  ['text', 'Text', TextPair],
  ['tools', 'Tools', ToolPairs],
  ['timing', 'Timing', Timing],
] as const

export default function CompareRoom() {
  const { get, set } = useQuery()
  const [a, b, by] = [get('a'), get('b'), get('by')]
  const { value, error, isLoading, reload } = useCompared(a, b)
  const [name, , View] = views.find(([each]) => each === by) ?? views[0]
  const swap = () => set({ a: b, b: a }, { replace: true })
  useKeys({ s: { label: 'Swap the two runs', run: swap } }, 'Compare')
  return (
    <div className={css.room}>
      <h1 className="visually-hidden">Compare two runs</h1>
      <div className={css.pickers}>
        <Picker side="A" id={a} onPick={(id) => set({ a: id })} />
        <Button
          look="quiet"
          icon="swap"
          aria-label="Swap"
          disabled={a === undefined && b === undefined}
          onClick={swap}
        />
        <Picker side="B" id={b} onPick={(id) => set({ b: id })} />
      </div>
      {a === undefined || b === undefined ? (
        <Empty title="Choose two runs.">
          Or mark two rows in the list of runs with <kbd>x</kbd>.
        </Empty>
      ) : (
        <div className={css.body}>
          {error !== undefined && <ErrorNote error={error} onRetry={reload} />}
          {value === undefined && isLoading && <Skeleton rows={8} />}
          {value !== undefined && (
            <>
              <Summary {...value} />
              <FirstDifference {...value} />
              <div className={css.views} role="tablist" aria-label="Compare by">
                {views.map(([each, label]) => (
                  <button
                    key={label}
                    type="button"
                    role="tab"
                    aria-selected={each === name}
                    className={css.view}
                    onClick={() => set({ by: each })}
                  >
                    {label}
                  </button>
                ))}
              </div>
              <div role="tabpanel" aria-label={views.find(([each]) => each === name)![1]} className={css.panel}>
                <View {...value} />
              </div>
            </>
          )}
        </div>
      )}
    </div>
  )
}
