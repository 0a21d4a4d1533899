#!/usr/bin/env bash
# `fetch(url, { signal })` in Deno, of which only the body's reader is kept. One would guess that an abort closes the connection for as long as
# the body is read, whatever has become of the Response object, as in Node.
#
# In Deno 2.9.6 the signal reaches the body only while the Response has not been collected. After that an abort does nothing: the pending read
# stays pending and the connection stays open.
#
# Why it matters here: code that wraps the body of a model's stream keeps the body and drops the Response. A client that left did not stop the
# model, which is paid by the token. src/models/limits/bounded-response.ts holds the Response until its body has ended.
#
# A server on this machine says whether its connection was closed within two seconds of the abort. Exits with 1 when this changes.
set -eu
version=2.9.6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts "deno@$version"
cat >client.mjs <<'END'
const [url, keeps] = Deno.args
const kept = []
const abort = new AbortController()
async function open() {
  const response = await fetch(url, { signal: abort.signal })
  if (keeps === 'kept') kept.push(response)
  return response.body.getReader()
}
const reader = await open()
await reader.read()
reader.read().catch(() => {})
for (let i = 0; i < 5; i++) {
  await new Promise((resolve) => setTimeout(resolve, 50))
  gc()
}
abort.abort()
console.log('aborted')
await new Promise((resolve) => setTimeout(resolve, 10_000))
console.log(kept.length, reader)
END
cat >try.mjs <<'END'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
for (const keeps of ['kept', 'collected']) {
  let closed
  const found = new Promise((resolve) => (closed = resolve))
  const server = createServer((_, response) => {
    response.write('x')
    response.on('close', () => closed('closed'))
  })
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready))
  const url = `http://127.0.0.1:${server.address().port}/`
  const args = ['run', '--no-prompt', '--allow-net', '--v8-flags=--expose-gc', 'client.mjs', url, keeps]
  const child = spawn(process.argv[2], args, { env: { HOME: process.cwd(), NO_COLOR: '1' } })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const state = await Promise.race([found, new Promise((resolve) => setTimeout(resolve, 2000, 'open'))])
  console.log(`${keeps}: ${state}`)
  child.kill('SIGKILL')
  server.closeAllConnections()
  server.close()
}
END
seen=$(node try.mjs "$(ls -d "$PWD"/node_modules/@deno/*/deno)")
echo "Deno $version, the connection after the abort, with the Response …"
echo "$seen"
[ "$seen" = $'kept: closed\ncollected: open' ] || { echo 'This has changed.'; exit 1; }
