/** The settings of a step, for those who may not try others. */
import type { StepSettings } from '../../../src/part/agent-settings.ts'
import { ToolAbout, ToolName } from './ToolChoices.tsx'
import css from './Agent.module.css'

export function StepFacts({ step: { model, fallbacks = [], temperature, system, tools } }: { step: StepSettings }) {
  return (
    <>
      <dl className={css.facts}>
        <dt>Model</dt>
        <dd>{model === undefined ? 'the default of this server' : [model, ...fallbacks].join(', then ')}</dd>
        {temperature !== undefined && (
          <>
            <dt>Temperature</dt>
            <dd>{temperature}</dd>
          </>
        )}
        {system !== undefined && (
          <>
            <dt>System prompt</dt>
            <dd className={css.prompt}>{system}</dd>
          </>
        )}
      </dl>
      <h3>Tools</h3>
      {tools.length === 0 ? (
        <p>None.</p>
      ) : (
        <ul className={css.parts}>
          {tools.map((tool) => (
            <li key={tool.name}>
              <ToolName tool={tool} />
              <ToolAbout tool={tool} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
