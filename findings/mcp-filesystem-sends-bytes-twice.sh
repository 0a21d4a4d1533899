#!/bin/sh
# Guess: `structuredContent` of an MCP tool is data for programs, and pictures stand in `content`. So a client that tells a model the structured content,
# as Claude Code does, tells it no base64.
# What happens: the tool `read_media_file` of the reference server for files puts the whole content into `structuredContent`, too: the bytes come twice,
# once as a picture and once as base64 in JSON.
# Why it matters here: a picture of 1 MB would be 1.4 million characters of text in a prompt. Bytes that structured content repeats must be taken out.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @modelcontextprotocol/client@2.4.0 @modelcontextprotocol/server-filesystem@2026.8.31 >/dev/null
mkdir files
node -e "require('fs').writeFileSync('files/dot.png', Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64'))"
cat > run.mjs <<'JS'
import { readFileSync } from 'node:fs'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
const client = new Client({ name: 'c', version: '1' })
const args = ['node_modules/@modelcontextprotocol/server-filesystem/dist/index.js', `${process.cwd()}/files`]
await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
const path = `${process.cwd()}/files/dot.png`
const { content, structuredContent } = await client.callTool({ name: 'read_media_file', arguments: { path } })
const bytes = readFileSync('files/dot.png').toString('base64')
const count = (value) => JSON.stringify(value).split(bytes).length - 1
console.log('in content:', count(content), 'in structuredContent:', count(structuredContent))
await client.close()
JS
version() { node -p "require('./node_modules/@modelcontextprotocol/$1/package.json').version"; }
echo "server-filesystem $(version server-filesystem), client $(version client), Node $(node -v)"
said=$(node run.mjs)
echo "$said"
[ "$said" = "in content: 1 in structuredContent: 1" ] || { echo "changed"; exit 1; }
