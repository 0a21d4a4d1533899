/** A module with a `fetch` export, for Deno (`deno serve main.ts`), Bun (`bun main.ts`) and Cloudflare Workers. */
import { createRuntime } from 'millrace'
import { createHandler } from 'millrace/server'

const runtime = createRuntime({
  agents: { assistant: 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]' },
})

export default { fetch: createHandler({ runtime }) }
