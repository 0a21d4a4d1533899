/** A chat over Socket.IO: text, a tool that runs in this page, stop, and the same answer after a lost connection or a reload. */
import { io } from 'socket.io-client'

const server = new URLSearchParams(location.search).get('server') ?? 'http://localhost:3000'
const socket = io(server)

const tools = {
  setBackground: {
    description: 'Sets the background colour of the page.',
    parameters: { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] },
    run({ color }) {
      document.body.style.background = color
      return `The background is ${color} now.`
    },
  },
}

// The thread and its last run are in the address, so a reload comes back to them.
let [threadId, millraceRunId] = location.hash.slice(1).split('/')
threadId ||= crypto.randomUUID()
/** The run that is shown, as it was named here. */
let runId
/** What came with the last event: how far this page has read. */
let last
/** Calls of tools, as they come. */
const calls = new Map()

const $ = (selector) => document.querySelector(selector)

function line(role, id) {
  const p = document.getElementById(id) ?? document.createElement('p')
  Object.assign(p, { id, className: role })
  if (!p.isConnected) $('#messages').append(p)
  return p
}

function show({ id, role, content }) {
  if (content) line(role, id).textContent = content
}

/** Resolves with the acknowledgement. */
async function send(type, data) {
  const answer = await socket.emitWithAck('message', { type, data: { protocolVersion: '1.0', ...data } })
  if (!answer.ok) fail(answer.error.message)
  return answer
}

function fail(message) {
  $('#error').textContent = message
  $('#error').hidden = false
}

async function call({ name, args }, toolCallId) {
  const tool = tools[name]
  // Not a tool of this page: the server runs it.
  if (!tool) return
  const content = await tool.run(JSON.parse(args))
  // After a reload the tools run again, and what they return has been sent before: the server acknowledges it once more.
  await send('tool_result', { messageId: crypto.randomUUID(), toolCallId, content, role: 'tool' })
}

const on = {
  RUN_STARTED() {
    $('#error').hidden = true
    $('#stop').disabled = false
  },
  MESSAGES_SNAPSHOT: ({ messages }) => messages.forEach(show),
  TEXT_MESSAGE_START: ({ messageId }) => void (line('assistant', messageId).textContent = ''),
  TEXT_MESSAGE_CONTENT: ({ messageId, delta }) => line('assistant', messageId).append(delta),
  TOOL_CALL_START: ({ toolCallId, toolCallName }) => calls.set(toolCallId, { name: toolCallName, args: '' }),
  TOOL_CALL_ARGS: ({ toolCallId, delta }) => void (calls.get(toolCallId).args += delta),
  TOOL_CALL_END({ toolCallId }) {
    const { name, args } = calls.get(toolCallId)
    line('tool', toolCallId).textContent = `${name} ${args}`
    void call(calls.get(toolCallId), toolCallId)
  },
  RUN_FINISHED: () => void ($('#stop').disabled = true),
  RUN_ERROR({ message }) {
    fail(message)
    $('#stop').disabled = true
  },
}

socket.on('event', (event, sentWith) => {
  if (event.type === 'RUN_STARTED') runId = sentWith.runId
  // An earlier run, which a new message has interrupted.
  if (sentWith.runId !== runId) return
  last = sentWith
  on[event.type]?.(event)
})

// What came while the connection was lost, or before a reload.
socket.on('connect', () => {
  if (millraceRunId) void send('watch_run', { runId: millraceRunId, after: last })
})

$('form').onsubmit = async (event) => {
  event.preventDefault()
  const { text } = event.target.elements
  const message = { id: crypto.randomUUID(), role: 'user', content: text.value }
  text.value = ''
  show(message)
  // The server has what was said before.
  const answer = await send('run_agent', {
    threadId,
    runId: crypto.randomUUID(),
    messages: [message],
    tools: Object.entries(tools).map(([name, { description, parameters }]) => ({ name, description, parameters })),
    context: [],
    state: {},
    forwardedProps: { agent: 'assistant' },
  })
  if (!answer.ok) return
  millraceRunId = answer.millraceRunId
  location.hash = `${threadId}/${millraceRunId}`
}
$('#stop').onclick = () => void send('abort_run', { runId })
