/** The steps of an agent as nested lists: what runs one after the other, in rounds, or at the same time. */
import { Empty } from '../../kit/Empty.tsx'
import type { AgentTree, TreeStep } from '../../../src/part/agent-tree.ts'
import { stepAtLine } from './step-at-line.ts'
import css from './Drawing.module.css'

interface Props {
  tree: AgentTree | undefined
  /** Ids of the steps that run now, in a run of this agent. */
  active: ReadonlySet<string>
  /** The line of the editor's cursor. */
  cursor: number | undefined
  onLine(line: number): void
}

export function Drawing({ tree, active, cursor, onLine }: Props) {
  if (tree === undefined)
    return <Empty title="No steps yet">The steps appear here when the file has no mistakes.</Empty>
  const here = cursor === undefined ? undefined : stepAtLine(tree, cursor)
  const list = (steps: readonly TreeStep[]) => (
    <ol className={css.steps}>
      {steps.map((step) => (
        <li key={`${step.line} ${step.id}`}>
          <button
            type="button"
            className={css.step}
            data-testid="agent-step"
            data-active={active.has(step.id) || undefined}
            aria-current={step === here ? 'step' : undefined}
            onClick={() => onLine(step.line)}
          >
            <span className={css.glyph} aria-hidden="true">
              {glyphs.get(step.type) ?? '◇'}
            </span>
            <span className={css.id}>{step.id}</span>
            <span className={css.type}>{step.type}</span>
            <span className={css.more}>{detailOf(step)}</span>
            {active.has(step.id) && <span className={css.now}>running</span>}
          </button>
          {step.lists && (
            <div className={css.lists} data-type={step.type}>
              {step.lists
                .filter(({ steps: inside }) => inside.length > 0)
                .map(({ name, steps: inside }) => (
                  <section key={name} className={css.list}>
                    <h3>{step.type === 'loop' ? `↺ ${step.max === undefined ? '' : `at most ${step.max}×`}` : name}</h3>
                    {list(inside)}
                  </section>
                ))}
            </div>
          )}
        </li>
      ))}
    </ol>
  )
  return (
    <div className={css.drawing}>
      <h2 className={css.part}>Steps</h2>
      {list(tree.workflow)}
      {tree.after.length > 0 && (
        <>
          <h2 className={css.part}>After the answer</h2>
          {list(tree.after)}
        </>
      )}
    </div>
  )
}

const glyphs = new Map([
  ['llm', '✦'],
  ['router', '⑂'],
  ['memory', '▤'],
  ['output-generator', '≡'],
  ['call-agent', '↗'],
  ['mcp-tool', '⚒'],
  ['cli-agent', '›_'],
  ['script', 'ƒ'],
  ['condition', '?'],
  ['loop', '↺'],
  ['parallel', '∥'],
])

function detailOf({ model, tools, agent, runs }: TreeStep): string {
  return [model, agent, runs, tools && tools.length > 0 ? tools.join(', ') : undefined].filter(Boolean).join(' · ')
}
