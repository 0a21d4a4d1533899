/** What a chat shows before its first message. */
import type { AgentFacts } from '../../data/hooks.ts'
import { promptsFor } from './prompts.ts'
import css from './chat.module.css'

export function Welcome({ agent, onAsk }: { agent: AgentFacts; onAsk(text: string): void }) {
  const { name = agent.id, description } = agent
  return (
    <div className={css.welcome}>
      <h1>{name}</h1>
      {description !== undefined && <p>{description}</p>}
      <div className={css.prompts}>
        {promptsFor(agent).map((text) => (
          <button key={text} type="button" onClick={() => onAsk(text)}>
            {text}
          </button>
        ))}
      </div>
    </div>
  )
}
