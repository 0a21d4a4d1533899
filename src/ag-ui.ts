/** `millrace/ag-ui`: the AG-UI client of a Millrace server, for CopilotKit and others. Needs `@ag-ui/client`. */
export { MillraceAgent } from './ag-ui/millrace-agent.ts'
