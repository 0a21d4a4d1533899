#!/bin/sh
# Guess: when the connection of a run breaks, `await agent.runAgent()` of @ag-ui/client rejects, the caller catches it, and that is all.
# What happens: the client then cancels the reader of the failed body, and what that rejects with is an error that no caller can catch: Node
# ends a process that has no handler for such. A body that only ends early, without RUN_FINISHED, is no error at all: runAgent resolves with half an answer.
# Why it matters here: MillraceAgent hands the client a body that never fails, and reports "cut off" itself.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @ag-ui/client@1.0.0 >/dev/null
cat > run.mjs <<'JS'
import { createServer } from 'node:http'
import { HttpAgent } from '@ag-ui/client'
console.error = () => undefined
// Without it, Node would end here.
process.on('uncaughtException', () => console.log('and one error more, which nobody could catch'))
const breaks = process.argv[2] === 'breaks'
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const event = (data) => response.write(`data: ${JSON.stringify(data)}\n\n`)
    event({ type: 'RUN_STARTED', threadId: 't', runId: 'r' })
    event({ type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' })
    response.write(`data: ${JSON.stringify({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Half' })}\n\n`, () => {
      setImmediate(() => (breaks ? response.destroy() : response.end()))
    })
  })
}).listen(0, '127.0.0.1', async () => {
  const agent = new HttpAgent({ url: `http://127.0.0.1:${server.address().port}/`, threadId: 't' })
  agent.addMessage({ id: 'u', role: 'user', content: 'Hi' })
  await agent.runAgent({ runId: 'r' }).then(
    () => console.log('resolved with', agent.messages.at(-1).content),
    (error) => console.log('rejected with', error.message),
  )
  setTimeout(() => (console.log('alive'), process.exit(0)), 500)
})
JS
echo "@ag-ui/client $(node -p "require('@ag-ui/client/package.json').version"), Node $(node -v)"
ended=$(node run.mjs ends)
echo "$ended"
broken=$(node run.mjs breaks)
echo "$broken"
case "$ended" in "resolved with Half"*) ;; *) echo "changed: an early end is noticed"; exit 1 ;; esac
case "$broken" in *"one error more"*) ;; *) echo "changed: the rejection is all"; exit 1 ;; esac
