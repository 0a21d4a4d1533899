/** What the agent is made of: its steps, models, tools and skills. */
import { Link } from 'wouter'
import type { AgentFacts } from '../../data/hooks.ts'
import css from './chat.module.css'

export function AboutPanel({ agent }: { agent: AgentFacts }) {
  const { id, description, steps, tools, skills, history } = agent
  return (
    <div className={css.about}>
      {description !== undefined && <p>{description}</p>}
      <h3>Steps</h3>
      <ol>
        {steps.map((step) => (
          <li key={step.id}>
            <code>{step.id}</code> {step.type}
            {step.model !== undefined && <span> · {step.model}</span>}
            {step.stream === true && <span> · the answer</span>}
          </li>
        ))}
      </ol>
      <h3>Tools</h3>
      {tools.length === 0 ? (
        <p>None of its own.</p>
      ) : (
        <ul>
          {tools.map((name) => (
            <li key={name}>
              <code>{name}</code>
            </li>
          ))}
        </ul>
      )}
      {skills !== undefined && (
        <>
          <h3>Skills</h3>
          <ul>
            {skills.map(({ name, description: about }) => (
              <li key={name}>
                <code>{name}</code> {about}
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>Conversation</h3>
      <p>{history === 'client' ? 'The client keeps it and sends all of it.' : 'The server keeps it.'}</p>
      <p>
        <Link href={`/agents/${encodeURIComponent(id)}`}>Its file and its runs</Link>
      </p>
    </div>
  )
}
