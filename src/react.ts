/** `millrace/react`: a conversation with an agent in React components. */
export { MillraceProvider } from './react/client-context.ts'
export { useAgent, type UseAgentOptions, type UsedAgent } from './react/use-agent.ts'
export { useAgentSession } from './react/use-session.ts'
