'use client'

import { useState } from 'react'
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport } from 'ai'

const transport = new DefaultChatTransport({ api: '/api/chat', body: { agentId: 'assistant' } })

export default function Page() {
  const { messages, sendMessage, status } = useChat({ transport })
  const [text, setText] = useState('What is 12*7?')
  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <p key={id}>
          {role}: {parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}
        </p>
      ))}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void sendMessage({ text })
          setText('')
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button disabled={status !== 'ready'}>Send</button>
      </form>
    </main>
  )
}
