/**
 * Builds examples/nextjs with the real Next.js and asks it: answers must stream, and what `instrumentation.ts` registers must be
 * there for the routes. Needs the package registry, so it is no part of `npm test`. `--dev` asks `next dev` instead.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { startHeldModel } from './nextjs/held-model.ts'
import { buildExample, installExample, startNext } from './nextjs/project.ts'

const isDev = process.argv.includes('--dev')
const folder = mkdtempSync(join(tmpdir(), 'millrace-nextjs-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

await installExample(folder)
say('installed')
writeFileSync(
  join(folder, 'src/agents/held.yaml'),
  'workflow: [{ id: answer, type: llm, config: { model: "google:held", stream: true, messages: "$input.messages" } }]',
)
if (!isDev) {
  // What it keeps for the next build takes a seventh of this one, and there is none.
  const config = join(folder, 'next.config.ts')
  const own = 'experimental: { turbopackFileSystemCacheForBuild: false },'
  writeFileSync(config, readFileSync(config, 'utf8').replace('export default {', `$&\n  ${own}`))
  await buildExample(folder)
  say('built')
}

// Only a hang takes so long; installing and building may, on a busy machine.
const signal = AbortSignal.timeout(180_000)
const model = await startHeldModel()
const env = { GEMINI_API_KEY: 'none-needed', GEMINI_BASE_URL: model.url }
const server = startNext(folder, [isDev ? 'dev' : 'start', '--hostname', '127.0.0.1', '--port', '0'], env)
const lines: string[] = []
const waiters = new Set<() => void>()
for (const stream of [server.stdout!, server.stderr!]) {
  createInterface(stream).on('line', (line) => {
    lines.push(line)
    for (const wake of waiters) wake()
  })
}
void once(server, 'exit', { signal }).then(([code]) => code === null || fail(`next ended with ${code}`))
signal.addEventListener('abort', () => fail('it took too long'))

const url = (await printed(/http:\/\/127\.0\.0\.1:\d+/u))[0]
say(`ready at ${url}`)

assert.match(await (await fetch(`${url}/`, { signal })).text(), /What is 12\*7\?/u)
say('the page is there')

for (const path of ['/api/beddel/chat', '/api/chat']) {
  const answer = await (await ask(path, 'assistant')).text()
  assert.match(answer, /84/u, `${path} answered ${answer}`)
}
await printed(/persistConversation: \d+ characters/u)
say('both routes answer, with the callback of instrumentation.ts')

for (const path of ['/api/beddel/chat', '/api/chat']) {
  const response = await ask(path, 'held')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const readUntil = async (wanted: string) => {
    while (!text.includes(wanted)) {
      const { done, value } = await reader.read()
      assert.ok(!done, `${path} ended without "${wanted}": ${text}`)
      text += value
    }
  }
  await readUntil('early')
  assert.equal(model.waiting, 1, 'the model is not done when its first word is here')
  model.release()
  await readUntil('late')
}
say('both routes stream: the first word is here before the model has said the last')
process.exit(0)

function ask(path: string, agentId: string): Promise<Response> {
  const messages = [{ role: 'user', content: 'What is 12*7?' }]
  return fetch(url + path, {
    method: 'POST',
    // As browsers do: what Next.js compresses must not be held back for it.
    headers: { 'content-type': 'application/json', 'accept-encoding': 'gzip, deflate, br' },
    body: JSON.stringify({ agentId, messages }),
    signal,
  })
}

async function printed(pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const found = lines.map((line) => pattern.exec(line)).find((match) => match !== null)
    if (found) return found
    await new Promise<void>((resolve) => waiters.add(resolve))
  }
}

function say(line: string): void {
  process.stdout.write(`nextjs: ${line} (${Math.round(performance.now() / 1000)} s)\n`)
}

function fail(reason: string): never {
  process.stdout.write(`${lines.join('\n')}\nnextjs: ${reason}\n`)
  process.exit(1)
}
