#!/usr/bin/env bash
# What `claude -p --resume` says that it has cost. One would guess that `total_cost_usd` and `modelUsage` of a result are those of the process
# that prints it, as its `usage` is.
#
# Claude Code 2.0.75 takes up the costs of the session that it resumes: the second process says that it has used twice the tokens of its one
# model call, and its price includes the first. Its line has nothing else to tell the two apart; `usage` is that of the turn. Later versions
# add `model_usage_since_last_result`. Nor can earlier totals be taken off: a third process began from the total of the first, not of the second.
#
# Why it matters here: who adds up the prices of the runs of a session counts the earlier ones again. src/ingest/claude/result.ts counts what was
# used since the last result where a line says so. Of old versions the price of a resumed run is too high, and it cannot be mended from the line.
#
# The model is a server on this machine that says "Hello." for 1000 tokens in and 100 out. Exits with 1 when any of this changes.
set -eu
version=2.0.75
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/home" "$folder/work"
cd "$folder"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts "@anthropic-ai/claude-code@$version"
cat >try.mjs <<'END'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'

const counts = { input_tokens: 1000, output_tokens: 100, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
const server = createServer((request, response) => {
  let body = ''
  request.on('data', (piece) => (body += piece))
  request.on('end', () => {
    if (!/^\/v1\/messages(\?|$)/.test(request.url)) return response.writeHead(404).end('{}')
    const { model, stream } = JSON.parse(body)
    const message = { id: `msg_${Math.random()}`, type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage: counts }
    if (!stream) {
      const whole = { ...message, content: [{ type: 'text', text: 'Hello.' }], stop_reason: 'end_turn' }
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const say = (type, fields) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`)
    say('message_start', { message })
    say('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
    say('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello.' } })
    say('content_block_stop', { index: 0 })
    say('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 100 } })
    say('message_stop', {})
    response.end()
  })
})
await new Promise((done) => server.listen(0, '127.0.0.1', done))

async function ask(...more) {
  const args = ['node_modules/@anthropic-ai/claude-code/cli.js', '-p', 'Hi', '--output-format', 'json', ...more]
  const env = {
    PATH: process.env.PATH,
    HOME: `${process.cwd()}/home`,
    ANTHROPIC_API_KEY: 'none',
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${server.address().port}`,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }
  const child = spawn(process.execPath, args, { env, timeout: 60_000, stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  for await (const piece of child.stdout.setEncoding('utf8')) said += piece
  return JSON.parse(said)
}
const first = await ask()
const second = await ask('--resume', first.session_id)
const third = await ask('--resume', second.session_id)
server.close()
const sonnet = ({ modelUsage }) => Object.entries(modelUsage).find(([name]) => name.includes('sonnet'))[1].inputTokens
for (const [name, each] of Object.entries({ first, second, third }))
  console.log(name, 'usage', each.usage.input_tokens, 'modelUsage', sonnet(each), 'total_cost_usd', each.total_cost_usd)
const isSo =
  first.usage.input_tokens === 1000 && sonnet(first) === 1000 &&
  second.usage.input_tokens === 1000 && sonnet(second) === 2000 &&
  second.total_cost_usd > first.total_cost_usd * 1.9 && second.model_usage_since_last_result === undefined &&
  sonnet(third) === 2000
process.exitCode = isSo ? 0 : 1
END
node try.mjs
