/** The tools of a step, each with what it is and what it takes, to switch off and on; and those that the server has besides. */
import type { StepSettings, ToolFacts } from '../../../src/part/agent-settings.ts'
import { JsonTree } from '../../kit/JsonTree.tsx'
import css from './Agent.module.css'

interface Props {
  step: StepSettings
  /** Name → whether the step has it, where that is not as in the file. */
  changes: Readonly<Record<string, boolean>> | undefined
  /** All tools of the server. */
  others: readonly ToolFacts[] | undefined
  faults: readonly string[]
  onChange(tools: Record<string, boolean>): void
}

export function ToolChoices({ step, changes = {}, others = [], faults, onChange }: Props) {
  const own = new Set(step.tools.map(({ name }) => name))
  const added = others.filter(({ name }) => !own.has(name) && changes[name] === true)
  const more = others.filter(({ name }) => !own.has(name) && changes[name] !== true)
  // A tool that was added and that this server has no more.
  const lost = Object.keys(changes).filter((name) => !own.has(name) && others.every((tool) => tool.name !== name))
  const choice = (tool: ToolFacts, isOn: boolean) => (
    <li key={tool.name}>
      <label className={css.tool}>
        <input type="checkbox" checked={isOn} onChange={({ target }) => onChange({ [tool.name]: target.checked })} />
        <ToolName tool={tool} />
        {changes[tool.name] !== undefined && <span className={css.changed}>changed</span>}
      </label>
      <ToolAbout tool={tool} />
    </li>
  )
  return (
    <fieldset className={css.tools}>
      <legend>Tools</legend>
      {step.tools.length + added.length + lost.length === 0 && <p className={css.soft}>None.</p>}
      <ul>
        {step.tools.map((tool) => choice(tool, changes[tool.name] ?? true))}
        {added.map((tool) => choice(tool, true))}
        {lost.map((name) => choice({ name, kind: 'server' }, true))}
      </ul>
      {faults.map((message) => (
        <p key={message} className={css.fault} role="alert">
          {message}
        </p>
      ))}
      {more.length > 0 && (
        <details>
          <summary>More tools of this server ({more.length})</summary>
          <ul>{more.map((tool) => choice(tool, false))}</ul>
        </details>
      )}
    </fieldset>
  )
}

const kinds: Readonly<Record<ToolFacts['kind'], string>> = {
  server: '',
  client: 'in the client',
  agent: 'an agent',
  mcp: 'MCP',
  script: 'scripts',
}

export function ToolName({ tool: { name, kind } }: { tool: ToolFacts }) {
  return (
    <span>
      <code>{name.replace(/^mcp:/u, '')}</code> {kinds[kind] !== '' && <span className={css.soft}>{kinds[kind]}</span>}
    </span>
  )
}

export function ToolAbout({ tool: { name, description, inputSchema } }: { tool: ToolFacts }) {
  if (description === undefined && inputSchema === undefined) return null
  return (
    <div className={css.about}>
      {description !== undefined && <p>{description}</p>}
      {inputSchema !== undefined && (
        <details>
          <summary aria-label={`Schema of ${name}`}>Schema</summary>
          <JsonTree value={inputSchema} depth={2} />
        </details>
      )}
    </div>
  )
}
