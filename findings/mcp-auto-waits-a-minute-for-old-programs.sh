#!/bin/sh
# Guess: a client of @modelcontextprotocol/client with `versionNegotiation: { mode: 'auto' }` connects to programs of older versions about as fast as
# before: it asks `server/discover`, and goes on with `initialize` when that is not known.
# What happens: so it is with programs that answer the unknown request with an error. A program that ignores what it does not know, as many small
# ones do, is waited for as long as for any request: a minute, at each start. Then `initialize` is sent, and all is well.
# Why it matters here: every agent with such a server would begin a minute late. The probe gets half of `connectTimeout`, 5 s, and that a
# server is of the older version is remembered (src/tools/mcp/connect-client.ts).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @modelcontextprotocol/client@2.4.0 >/dev/null
cat > program.js <<'JS'
const answers = process.argv[2] === 'answers'
const say = (message) => console.log(JSON.stringify({ jsonrpc: '2.0', ...message }))
require('readline')
  .createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method } = JSON.parse(line)
    if (method === 'initialize')
      say({ id, result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } } })
    else if (id !== undefined && answers) say({ id, error: { code: -32601, message: 'Method not found' } })
  })
JS
cat > connect.mjs <<'JS'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
const client = new Client({ name: 'x', version: '1' }, { versionNegotiation: { mode: 'auto' } })
const began = Date.now()
await client.connect(new StdioClientTransport({ command: process.execPath, args: ['program.js', process.argv[2]] }))
console.log(client.getProtocolEra(), Math.round((Date.now() - began) / 1000))
await client.close()
JS
echo "@modelcontextprotocol/client $(node -p "JSON.parse(require('fs').readFileSync('node_modules/@modelcontextprotocol/client/package.json')).version"), Node $(node -v)"
answered=$(node connect.mjs answers)
echo "a program that answers: $answered s"
ignored=$(node connect.mjs ignores)
echo "a program that ignores: $ignored s"
[ "${answered##* }" -lt 10 ] && [ "${ignored##* }" -ge 50 ] || { echo 'changed: the waits are others'; exit 1; }
