/** What a newcomer may ask an agent with one click. */
import type { AgentFacts } from '../../data/hooks.ts'
import { formOf } from './agent-form.ts'

const byTool: Readonly<Record<string, string | undefined>> = {
  calculator: 'What is 12*7?',
  getCurrentTime: 'What time is it?',
  getLocation: 'Where am I?',
  showMessage: 'Show a message that says hello',
}

const generic = ['What can you do?', 'Write a haiku about a mill', 'Explain streaming in three short points']

export function promptsFor(agent: AgentFacts): string[] {
  const { tools } = agent
  // Its input is a form: words are not what it waits for.
  if (needsForm(agent)) return []
  const own = tools.flatMap((tool) => (Object.hasOwn(byTool, tool) ? [byTool[tool]!] : []))
  return [...own, ...generic].slice(0, 4)
}

function needsForm(agent: AgentFacts): boolean {
  return (formOf(agent).schema?.required ?? []).length > 0
}

/** The agent that a first visit opens: one that answers in words to a message alone. */
export function firstAgent(agents: readonly AgentFacts[]): string | undefined {
  const free = agents.filter((agent) => !needsForm(agent))
  const known = free.find(({ id }) => id === 'assistant')
  return (known ?? free[0] ?? agents[0])?.id
}
