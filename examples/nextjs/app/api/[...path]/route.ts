// Millrace's routes under /api: /api/chat for useChat. Give `apiKey` or `authorize` to have /api/runs (the log), too.
import { createRuntime, loadYaml } from 'millrace'
import { createHandler } from 'millrace/server'

const { text } = await loadYaml('src/agents/assistant.yaml')
// With `store: sqliteStore('.millrace/millrace.db')` of 'millrace/record' runs survive a restart.
const runtime = createRuntime({ agents: { assistant: text } })
const handler = createHandler({ runtime })

export const GET = handler
export const POST = handler
