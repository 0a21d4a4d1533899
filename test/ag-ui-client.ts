/** Reads AG-UI bodies as the official clients do: the current one, and the one that CopilotKit uses. */
import { HttpAgent } from '@ag-ui/client'
import { HttpAgent as OldHttpAgent } from 'ag-ui-client-old'
import { vi } from 'vitest'
import type { AgUiMessage } from '../src/wire/ag-ui/ag-ui-event.ts'

export interface AgUiShown {
  messages: AgUiMessage[]
  result: unknown
  /** Of RUN_ERROR, at which a client does not fail. */
  error?: string
}

/** Throws what the client throws, and whatever it warns about. */
export async function showAgUi(body: string, old = false): Promise<AgUiShown> {
  const warn = vi.spyOn(console, 'warn').mockImplementation((text: unknown) => {
    throw new Error(`The client warns: ${String(text)}`)
  })
  const report = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  try {
    const fetch = () => Promise.resolve(new Response(body, { headers: { 'content-type': 'text/event-stream' } }))
    const config = { url: 'http://localhost/', threadId: 'thread-1', fetch }
    const agent = old ? new OldHttpAgent(config) : new HttpAgent(config)
    const shown: AgUiShown = { messages: [], result: undefined }
    const { result } = await agent.runAgent(
      { runId: 'run-1' },
      {
        onRunErrorEvent: ({ event }) => {
          shown.error = event.message
        },
      },
    )
    return { ...shown, result, messages: agent.messages as AgUiMessage[] }
  } finally {
    warn.mockRestore()
    report.mockRestore()
  }
}
