/** `millrace/react`: a conversation with an agent, and any run, in React components. */
export { MillraceProvider } from './react/client-context.ts'
export { useAgent, type UseAgentOptions, type UsedAgent } from './react/use-agent.ts'
export { useAgentSession } from './react/use-agent.ts'
export { useLiveRun } from './react/use-live-run.ts'
export { RunOutline, StepList, type RunProps } from './react/run-outline.tsx'
export { LogList, RunLog } from './react/run-log.tsx'
export { AnswerParts, RunAnswer, type RenderText } from './react/run-answer.tsx'
