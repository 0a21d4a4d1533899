#!/bin/sh
# Guess: a provider for OpenResponses shows the message of an error object `{ message, type, code, param }`, where `param` may be null, as OpenAI sends it
# for errors that concern no single field.
# What happens: with `param: null` the error is only the status text ("Bad Request"). With a text in `param` it has the server's message.
# Why it matters here: a server that wants its cure to be read must send a text in `param`, also where no field is wrong.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @ai-sdk/open-responses@2.0.36 ai@7.0.173 >/dev/null
cat > run.mjs <<'JS'
import { createServer } from 'node:http'
import { createOpenResponses } from '@ai-sdk/open-responses'
import { generateText } from 'ai'
for (const param of [null, '']) {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'There is no model "x".', type: 'invalid_request_error', code: 'c', param } }))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const provider = createOpenResponses({ name: 'here', url: `http://127.0.0.1:${server.address().port}/v1/responses` })
  const error = await generateText({ model: provider('x'), prompt: 'Hi', maxRetries: 0 }).catch((thrown) => thrown)
  console.log(`param ${JSON.stringify(param)}: ${error.message}`)
  server.close()
}
JS
echo "@ai-sdk/open-responses $(node -p "require('./node_modules/@ai-sdk/open-responses/package.json').version"), Node $(node -v)"
said=$(node run.mjs)
echo "$said"
[ "$said" = 'param null: Bad Request
param "": There is no model "x".' ] || { echo "changed"; exit 1; }
