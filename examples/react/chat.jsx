/** A chat: messages as they come, a tool that runs in this page once you allow it, stop, and another answer. */
import { defineTool } from 'millrace/client'
import { useAgent } from 'millrace/react'
import { LastRun } from './last-run.jsx'
import { z } from 'zod'

const tools = {
  setBackground: defineTool(
    'Sets the background colour of the page.',
    z.object({ color: z.string().describe('A CSS colour') }),
    ({ color }) => {
      document.body.style.background = color
      return `The background is ${color} now.`
    },
    { confirm: ({ color }) => `Make the page ${color}?` },
  ),
  pageTitle: defineTool('The title of the page.', z.object({}), () => document.title),
}

export function Chat({ threadId }) {
  const { messages, status, error, requests, send, stop, answer, regenerate } = useAgent({
    agent: 'assistant',
    threadId,
    tools,
  })
  const isBusy = status === 'submitted' || status === 'streaming'

  function submit(event) {
    event.preventDefault()
    const { text } = event.currentTarget.elements
    void send(text.value)
    text.value = ''
  }

  return (
    <main>
      <ol aria-label="Conversation">
        {messages.map(({ id, role, parts }) => (
          <li key={id} className={role}>
            {parts.map((part, i) => (
              <Part key={i} part={part} />
            ))}
          </li>
        ))}
      </ol>
      {requests.map(({ requestId, message, toolName }) => (
        <p key={requestId} role="group" aria-label="Question">
          {message ?? toolName} <button onClick={() => answer(requestId, { approved: true })}>Approve</button>{' '}
          <button onClick={() => answer(requestId, { approved: false })}>Deny</button>
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={submit}>
        <input name="text" aria-label="Message" autoComplete="off" required />
        <button>Send</button>
        <button type="button" disabled={!isBusy} onClick={stop}>
          Stop
        </button>
        <button type="button" disabled={isBusy || messages.length === 0} onClick={() => regenerate()}>
          Again
        </button>
        <output>{status}</output>
      </form>
      <LastRun runId={messages.at(-1)?.runId} />
    </main>
  )
}

function Part({ part }) {
  if (part.type === 'text') return <span>{part.text}</span>
  if (part.type === 'reasoning') return <em className="reasoning">{part.text}</em>
  if (part.type !== 'tool') return null
  const { toolName, inputText, output, errorText } = part
  return (
    <code className="tool">
      {toolName} {inputText} {errorText ?? (output === undefined ? '…' : JSON.stringify(output))}
    </code>
  )
}
