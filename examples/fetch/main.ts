/**
 * A module with a `fetch` export, for Deno (`deno serve --allow-net --allow-env --allow-sys=hostname main.ts`), Bun (`bun main.ts`) and
 * Cloudflare Workers, which call it with their `waitUntil`. docs/runtimes.md says more.
 */
import { createRuntime } from 'millrace'
import { createHandler } from 'millrace/server'

const runtime = createRuntime({
  agents: { assistant: 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]' },
})

export default {
  fetch: createHandler({ runtime }),
  /** For Bun, which otherwise ends a plain text answer after 10 seconds of silence. */
  idleTimeout: 0,
}
