/** Two runs beside each other. */
import type { ComponentType } from 'react'
import { useQuery } from '../../data/query.ts'
import { useMay } from '../../data/server.ts'
import { Button } from '../../kit/Button.tsx'
import { Empty } from '../../kit/Empty.tsx'
import { ErrorNote } from '../../kit/ErrorNote.tsx'
import { Skeleton } from '../../kit/Skeleton.tsx'
import { useKeys } from '../../shell/keys.ts'
import { AgentPair } from './AgentPair.tsx'
import { useCompared, type Compared } from './compared.ts'
import { FirstDifference } from './FirstDifference.tsx'
import { Picker } from './Picker.tsx'
import { PromptPairs } from './PromptPairs.tsx'
import { StepPairs } from './StepPairs.tsx'
import { Summary } from './Summary.tsx'
import { TextPair } from './TextPair.tsx'
import { Timing } from './Timing.tsx'
import { ToolPairs } from './ToolPairs.tsx'
import css from './Compare.module.css'

const views: readonly View[] = [
  ['prompt', 'Prompt', PromptPairs, ({ given }) => given.includes('prompt')],
  ['agent', 'Agent', AgentPair, ({ given }) => given.includes('agent')],
  ['steps', 'Steps', StepPairs],
  ['text', 'Text', TextPair],
  ['tools', 'Tools', ToolPairs],
  ['timing', 'Timing', Timing],
]

type View = readonly [name: string, label: string, of: ComponentType<Compared>, differs?: (of: Compared) => boolean]

/** Texts of agents, and what a model was told: not for everybody. */
const ofAgents = new Set(['prompt', 'agent'])

export default function CompareRoom() {
  const { get, set } = useQuery()
  const [a, b, by] = [get('a'), get('b'), get('by')]
  const { value, error, isLoading, reload } = useCompared(a, b)
  const mayRead = useMay('agents.read') === true
  const shown = mayRead ? views : views.filter(([each]) => !ofAgents.has(each))
  // Without a wish: the first cause. If nobody gave the two anything else, what they did.
  const usual = value && shown.find(([, , , differs]) => differs?.(value) === true)
  const [name, label, View] = shown.find(([each]) => each === by) ?? usual ?? shown.find(([each]) => each === 'steps')!
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
                {shown.map(([each, title, , differs]) => (
                  <button
                    key={each}
                    type="button"
                    role="tab"
                    aria-selected={each === name}
                    className={css.view}
                    onClick={() => set({ by: each })}
                  >
                    {title}
                    {differs?.(value) === true && (
                      <span className={css.differs}>
                        <span aria-hidden="true">≠</span>
                        <span className="visually-hidden">differs</span>
                      </span>
                    )}
                  </button>
                ))}
              </div>
              <div role="tabpanel" aria-label={label} className={css.panel}>
                <View {...value} />
              </div>
            </>
          )}
        </div>
      )}
    </div>
  )
}
