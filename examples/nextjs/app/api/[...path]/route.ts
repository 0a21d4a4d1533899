// Every route of Millrace under /api: /api/chat for useChat, /api/runs for the log …
import { createRuntime, loadYaml } from 'millrace'
import { createHandler } from 'millrace/server'

const { text } = await loadYaml('src/agents/assistant.yaml')
// With `store: sqliteStore('.millrace/millrace.db')` of 'millrace/record' runs survive a restart.
const runtime = createRuntime({ agents: { assistant: text } })
const handler = createHandler({ runtime })

export const GET = handler
export const POST = handler
