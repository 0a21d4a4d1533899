#!/bin/sh
# What `codex exec --json` (@openai/codex 0.171.0) says at its end.
#
# One would guess: Ctrl-C ends it by the signal, or with 130 as a shell reports it, or with a last event. And `turn.completed` has the usage of
# the turn that was completed.
# What happens: on SIGINT it exits with code 1 and prints no further event, so it looks like any failure. On SIGTERM the signal ends it. And
# the usage of `turn.completed` is that of the whole thread: a run that resumes a thread reports the tokens of all runs before it again.
# Why it matters here: a run that a person stops is interrupted, not failed; and tokens of resumed sessions would be counted twice.
#
# Needs node and npm. The model is a server of this script, on 127.0.0.1.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @openai/codex@0.171.0
mkdir home folder
cat > look.mjs <<'EOF'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'

let isTool = true
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    if (request.method !== 'POST') return response.writeHead(404).end('{}')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (event) => response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    send({ type: 'response.created', response: { id: 'r' } })
    const call = { type: 'function_call', id: 'f', call_id: 'c', name: 'exec_command', arguments: '{"cmd":"sleep 300"}' }
    const words = { type: 'message', role: 'assistant', id: 'm', content: [{ type: 'output_text', text: 'Done.' }] }
    send({ type: 'response.output_item.done', output_index: 0, item: isTool ? call : words })
    const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 0 }, output_tokens: 10, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 110 }
    send({ type: 'response.completed', response: { id: 'r', usage } })
    response.end()
  })
})
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const model = `model_providers.own={name="own",base_url="http://127.0.0.1:${server.address().port}/v1",wire_api="responses",env_key="OWN_KEY"}`

/** Resolves with its events and its end. `signal` is sent once a command runs. */
function codex(signal, ...more) {
  const options = ['--json', '--skip-git-repo-check', '--sandbox', 'danger-full-access', '-C', 'folder', '-c', 'model="own"', '-c', 'model_provider="own"', '-c', model]
  const env = { PATH: process.env.PATH, HOME: `${process.cwd()}/home`, OWN_KEY: 'none' }
  const child = spawn('node_modules/.bin/codex', ['exec', ...options, ...more, '-'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdin.end('Go on.')
  let out = ''
  child.stdout.on('data', (data) => {
    out += data
    if (signal !== undefined && out.includes('item.started')) child.kill(signal)
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
  return new Promise((resolve) =>
    child.on('close', (code, ended) => {
      clearTimeout(timer)
      const events = out.trim().split('\n').map((line) => JSON.parse(line))
      resolve({ code, ended, last: events.at(-1) })
    }),
  )
}

const found = []
for (const signal of ['SIGINT', 'SIGTERM']) {
  const { code, ended, last } = await codex(signal)
  found.push(`${signal}: exit ${code}, signal ${ended}, last event ${last.type}`)
}
isTool = false
for (const more of [[], ['resume', '--last']]) {
  const { last } = await codex(undefined, ...more)
  found.push(`${more[0] ?? 'new'}: ${last.type} with ${last.usage?.input_tokens} input tokens, of one request with 100`)
}
server.closeAllConnections()
server.close()
const expected = [
  'SIGINT: exit 1, signal null, last event item.started',
  'SIGTERM: exit null, signal SIGTERM, last event item.started',
  'new: turn.completed with 100 input tokens, of one request with 100',
  'resume: turn.completed with 200 input tokens, of one request with 100',
]
console.log(`@openai/codex 0.171.0\n${found.join('\n')}`)
if (JSON.stringify(found) !== JSON.stringify(expected)) {
  console.error(`Changed. It was:\n${expected.join('\n')}`)
  process.exit(1)
}
EOF
node look.mjs
