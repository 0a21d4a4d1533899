import { StrictMode, createElement } from 'react'
import { createRoot } from 'react-dom/client'
import { MillraceClient } from 'millrace/client'
import { MillraceProvider } from 'millrace/react'
import { Chat } from './chat.jsx'

const server = new URLSearchParams(location.search).get('server') ?? 'http://localhost:3000'
const client = new MillraceClient({ url: server })
// The thread is in the address, so a reload comes back to it.
location.hash ||= Math.random().toString(36).slice(2)
const chat = createElement(Chat, { threadId: location.hash.slice(1) })

createRoot(document.querySelector('#app')).render(
  createElement(StrictMode, null, createElement(MillraceProvider, { client }, chat)),
)
