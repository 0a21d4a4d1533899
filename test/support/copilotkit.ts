/** CopilotKit's core without a page, with our AG-UI agent, against a server. */
import { CopilotKitCore, type CopilotKitCoreConfig, type FrontendTool } from '@copilotkit/core'
import type { AbstractAgent, RunAgentInput } from 'ag-ui-client-old'
import { vi } from 'vitest'

export interface Copilot {
  core: CopilotKitCore
  agent: AbstractAgent
  /** Types of the events that came, in order. */
  events: string[]
  /** What was sent, as it went out. */
  sent: RunAgentInput[]
  errors: string[]
  say(text: string): Promise<unknown>
}

export interface CopilotOptions {
  tools?: FrontendTool[]
  threadId?: string
  /** The package that our agent is built on. CopilotKit brings the old one. */
  client?: 'ag-ui-client-old' | '@ag-ui/client'
}

/** Our class, built on this version of AG-UI's client. */
async function agentClass(client: string) {
  vi.resetModules()
  vi.doMock('@ag-ui/client', () => vi.importActual(client))
  const { MillraceAgent } = await import('../../src/ag-ui/millrace-agent.ts')
  vi.doUnmock('@ag-ui/client')
  return MillraceAgent
}

export async function createCopilot(
  url: string,
  { tools = [], threadId = 't', client = 'ag-ui-client-old' }: CopilotOptions = {},
): Promise<Copilot> {
  const MillraceAgent = await agentClass(client)
  const sent: RunAgentInput[] = []
  const events: string[] = []
  const errors: string[] = []
  const made = new MillraceAgent({
    url: `${url}/ag-ui/a`,
    agentId: 'a',
    threadId,
    fetch: (path, init) => {
      if (typeof init.body === 'string') sent.push(JSON.parse(init.body) as RunAgentInput)
      return fetch(path, init)
    },
  })
  // The types of core are those of the old client.
  const agent = made as unknown as AbstractAgent
  const config: CopilotKitCoreConfig = { agents__unsafe_dev_only: { a: agent }, tools }
  const core = new CopilotKitCore(config)
  core.subscribe({ onError: ({ error, code }) => void errors.push(`${code}: ${error.message}`) })
  agent.subscribe({ onEvent: ({ event }) => void events.push(event.type) })
  return {
    core,
    agent,
    events,
    sent,
    errors,
    say(text) {
      agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text })
      return core.runAgent({ agent })
    },
  }
}

/** Messages as lines: `user: Hi`, `assistant: Which? [pick {}]`, `tool: red`. */
export function linesOf({ messages }: AbstractAgent): string[] {
  return messages.map((message) => {
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : []
    const words = [
      ...(typeof message.content === 'string' && message.content !== '' ? [message.content.trim()] : []),
      ...calls.map((call) => `[${call.function.name} ${call.function.arguments}]`),
    ]
    return `${message.role}: ${words.join(' ')}`
  })
}
