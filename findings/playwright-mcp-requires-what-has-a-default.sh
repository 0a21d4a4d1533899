#!/bin/sh
# Guess: a parameter of an MCP tool that has a default is not in `required`, and the server refuses a call without one that is.
# What happens: Playwright's server lists `scale` of `browser_take_screenshot` as required and with the default "css", and takes calls without it: what
# it misses then is the browser, not the argument.
# Why it matters here: who checks the arguments of a model against the listed schema refuses calls that would work. A default that is required must be sent.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/client@2.4.0 @playwright/mcp@0.0.83 >/dev/null
cat > run.mjs <<'JS'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
const client = new Client({ name: 'c', version: '1' })
const args = ['node_modules/@playwright/mcp/cli.js', '--headless', '--isolated', '--executable-path', '/no/such/browser']
await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
const { tools } = await client.listTools()
const { inputSchema } = tools.find(({ name }) => name === 'browser_take_screenshot')
console.log('required:', inputSchema.required.join(), 'default:', inputSchema.properties.scale.default)
const { content } = await client.callTool({ name: 'browser_take_screenshot', arguments: {} })
console.log('misses:', /\/no\/such\/browser/.test(content[0].text) ? 'the browser' : content[0].text)
await client.close()
JS
echo "@playwright/mcp $(node -p "require('./node_modules/@playwright/mcp/package.json').version"), Node $(node -v)"
said=$(node run.mjs)
echo "$said"
[ "$said" = "required: scale default: css
misses: the browser" ] || { echo "changed"; exit 1; }
