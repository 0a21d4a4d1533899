#!/bin/sh
# Guess: the official client of MCP over stdio reports a line of the server's stdout that is no JSON, at least to `onerror`: the specification
# forbids such lines. So a test with the official client shows that stdout has messages alone.
# What happens: the client works on without a word. `onerror` is not called, and the call has its result.
# Why it matters here: only a test that reads stdout itself can show that nothing but messages is on it; stricter clients would fail there.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @modelcontextprotocol/client@2.4.0 >/dev/null
cat > server.mjs <<'JS'
import { createInterface } from 'node:readline'
console.log('a log line of a library')
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  console.log('another line beside the messages')
  const result =
    method === 'initialize'
      ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }
      : { tools: [{ name: 'one', inputSchema: { type: 'object' } }] }
  console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
}
JS
cat > run.mjs <<'JS'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
const errors = []
const client = new Client({ name: 'c', version: '1' })
const transport = new StdioClientTransport({ command: process.execPath, args: ['server.mjs'] })
client.onerror = (error) => errors.push(error.message)
await client.connect(transport)
const { tools } = await client.listTools()
console.log('tools:', tools.map(({ name }) => name).join(), 'errors:', errors.length)
await client.close()
JS
echo "@modelcontextprotocol/client $(node -p "require('./node_modules/@modelcontextprotocol/client/package.json').version"), Node $(node -v)"
said=$(node run.mjs)
echo "$said"
[ "$said" = "tools: one errors: 0" ] || { echo "changed"; exit 1; }
