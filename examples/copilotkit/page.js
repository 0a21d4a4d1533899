/** A chat without a framework: text, a tool that runs in this page, approvals, stop, and the same thread after a reload. */
import { CopilotKitCore } from '@copilotkit/core'
import { z } from 'zod'
import { MillraceAgent } from 'millrace/ag-ui'

const server = new URLSearchParams(location.search).get('server') ?? 'http://localhost:3000'
// The thread is in the address, so a reload comes back to it.
location.hash ||= crypto.randomUUID()
const threadId = location.hash.slice(1)

const agent = new MillraceAgent({ url: `${server}/ag-ui/assistant`, agentId: 'assistant', threadId })
const copilotkit = new CopilotKitCore({
  agents__unsafe_dev_only: { assistant: agent },
  tools: [
    {
      name: 'setBackground',
      description: 'Sets the background colour of the page.',
      parameters: z.object({ color: z.string().describe('A CSS colour') }),
      handler: async ({ color }) => {
        document.body.style.background = color
        return `The background is ${color} now.`
      },
    },
  ],
})

const $ = (selector) => document.querySelector(selector)

function show({ messages }) {
  $('#messages').replaceChildren(
    ...messages.flatMap(({ role, content, toolCalls = [] }) => [
      ...(content ? [line(role, content)] : []),
      ...toolCalls.map((call) => line('tool', `${call.function.name} ${call.function.arguments}`)),
    ]),
  )
}

function line(role, text) {
  const p = document.createElement('p')
  p.className = role
  p.textContent = text
  return p
}

function busy(isRunning) {
  $('#stop').disabled = !isRunning
}

/** Until every question has an answer, AG-UI takes no other message. */
function ask(interrupts) {
  $('#approval').hidden = interrupts.length === 0
  $('form input').disabled = interrupts.length > 0
  $('#approval p').textContent = interrupts.map(({ message, id }) => message ?? id).join(' ')
}

agent.subscribe({
  onMessagesChanged: show,
  onRunInitialized: () => {
    busy(true)
    ask([])
    $('#error').hidden = true
  },
  onRunFinishedEvent: ({ outcome, interrupts }) => ask(outcome === 'interrupt' ? interrupts : []),
  onRunFinalized: () => busy(false),
})
copilotkit.subscribe({
  onError: ({ error }) => {
    $('#error').textContent = error.message
    $('#error').hidden = false
  },
})

$('form').onsubmit = (event) => {
  event.preventDefault()
  const { text } = event.target.elements
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text.value })
  text.value = ''
  void copilotkit.runAgent({ agent })
}
$('#stop').onclick = () => copilotkit.stopAgent({ agent })
$('#approval').onclick = ({ target }) => {
  if (!target.value) return
  const payload = { approved: target.value === 'yes' }
  const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload }))
  void copilotkit.runAgent({ agent, resume })
}

// What was said in this thread, and what is still being answered.
void copilotkit.connectAgent({ agent })
