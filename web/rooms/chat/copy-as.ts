/** The request of a chat as code: what a program sends to ask the same. */

export interface CodeRequest {
  /** `http://localhost:3000` */
  origin: string
  agentId: string
  text: string
  /** Other keys of the input. */
  values: Readonly<Record<string, unknown>>
  /** The server wants a key. It never stands in the code itself. */
  hasKey: boolean
}

export interface Code {
  id: string
  label: string
  language: string
  make(request: CodeRequest): string
}

export const codes: readonly Code[] = [
  { id: 'curl', label: 'curl', language: 'bash', make: curl },
  { id: 'openai', label: 'OpenAI', language: 'js', make: openai },
  { id: 'useChat', label: 'useChat', language: 'tsx', make: useChat },
  { id: 'ag-ui', label: 'AG-UI', language: 'js', make: agUi },
  { id: 'client', label: 'millrace/client', language: 'js', make: millraceClient },
]

function curl({ origin, agentId, text, values, hasKey }: CodeRequest): string {
  const body = { agentId, messages: [{ role: 'user', content: text }], ...values }
  const key = hasKey ? ` \\\n  -H "Authorization: Bearer $MILLRACE_API_KEY"` : ''
  return `curl -N ${shell(`${origin}/api/chat`)} \\\n  -H 'Content-Type: application/json'${key} \\\n  -d ${shell(JSON.stringify(body))}\n`
}

function openai({ origin, agentId, text, values, hasKey }: CodeRequest): string {
  const own = Object.entries(values).map(([key, value]) => `  ${js(key)}: ${JSON.stringify(value)},\n`)
  return `import OpenAI from 'openai'

const openai = new OpenAI({
  baseURL: ${js(`${origin}/v1`)},
  apiKey: ${hasKey ? 'process.env.MILLRACE_API_KEY' : `'none'`},
})
const stream = await openai.chat.completions.create({
  model: ${js(agentId)},
  messages: [{ role: 'user', content: ${js(text)} }],
${own.join('')}  stream: true,
})
for await (const { choices } of stream) process.stdout.write(choices[0]?.delta?.content ?? '')
`
}

function useChat({ origin, agentId, text, values, hasKey }: CodeRequest): string {
  // A page must not have the key: its own server adds it.
  const note = hasKey ? '      // The key stays on your server: let it pass the request on.\n' : ''
  return `import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport } from 'ai'

export function Chat() {
  const { messages, sendMessage } = useChat({
    transport: new DefaultChatTransport({
${note}      api: ${js(`${origin}/api/chat`)},
      body: ${inner({ agentId, ...values }, 6)},
    }),
  })
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <p key={id}>
          {role}: {parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}
        </p>
      ))}
      <button onClick={() => void sendMessage({ text: ${js(text)} })}>Ask</button>
    </main>
  )
}
`
}

function agUi({ origin, agentId, text, values, hasKey }: CodeRequest): string {
  const key = hasKey ? '\n  headers: { Authorization: `Bearer ${process.env.MILLRACE_API_KEY}` },' : ''
  const hasValues = Object.keys(values).length > 0
  const props = hasValues ? `{ forwardedProps: ${inner(values)} }` : '{}'
  // The protocol knows no other keys.
  const note = hasValues ? '// The agent reads these values as $input.forwardedProps.\n' : ''
  return `${note}import { HttpAgent } from '@ag-ui/client'

const agent = new HttpAgent({
  url: ${js(`${origin}/ag-ui/${encodeURIComponent(agentId)}`)},${key}
})
agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: ${js(text)} })
await agent.runAgent(${props}, {
  onTextMessageContentEvent: ({ event }) => void process.stdout.write(event.delta),
  // \`runAgent\` does not reject when a run fails.
  onRunErrorEvent: ({ event }) => console.error(event.message),
})
`
}

function millraceClient({ origin, agentId, text, values, hasKey }: CodeRequest): string {
  const input = Object.keys(values).length === 0 ? '' : `\n  input: ${inner(values)},`
  const key = hasKey ? ', apiKey: process.env.MILLRACE_API_KEY' : ''
  return `import { MillraceClient } from 'millrace/client'

const client = new MillraceClient({ url: ${js(origin)}${key} })
const run = client.run({
  agent: ${js(agentId)},
  messages: ${js(text)},${input}
})
for await (const words of run.textStream) process.stdout.write(words)
`
}

/** A text as a shell takes it unchanged. */
function shell(text: string): string {
  return `'${text.replaceAll(`'`, `'\\''`)}'`
}

function js(text: string): string {
  const quoted = JSON.stringify(text).slice(1, -1)
  return `'${quoted.replaceAll('\\"', '"').replaceAll(`'`, `\\'`)}'`
}

function inner(value: Readonly<Record<string, unknown>>, indent = 2): string {
  return JSON.stringify(value, undefined, 2).replaceAll('\n', `\n${' '.repeat(indent)}`)
}
