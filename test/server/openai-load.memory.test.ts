/** So many tokens for a client of `/v1` that hardly reads: memory stays flat, and nobody waits for it. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { folder } from '../support/cli.ts'
import { startMeasuredProcess } from '../support/measured-process.ts'
import { often } from '../support/thorough.ts'
import { expectSize } from '../support/figure.ts'

const MB = 1024 * 1024
/** 10^6 with `MILLRACE_THOROUGH=1`. */
const tokens = often(1_000_000)

/** `many:<n>` says n tokens, as fast as it is read. */
const config = `
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
function many(modelId) {
  const count = Number(modelId)
  return {
    specificationVersion: 'v4', provider: 'many', modelId, supportedUrls: {},
    async doStream({ abortSignal }) {
      let n = -1
      const stream = new ReadableStream({
        start: (controller) => abortSignal.addEventListener('abort', () => controller.error(abortSignal.reason)),
        pull(controller) {
          n++
          if (n === 0) controller.enqueue({ type: 'text-start', id: 't' })
          else if (n <= count) controller.enqueue({ type: 'text-delta', id: 't', delta: 'token ' })
          else {
            controller.enqueue({ type: 'text-end', id: 't' })
            controller.enqueue({ type: 'finish', finishReason: { unified: 'stop' }, usage })
            controller.close()
          }
        },
      }, { highWaterMark: 0 })
      return { stream }
    },
  }
}
export default { models: { providers: { many } } }
`
const agent = (count: number) =>
  `workflow: [{ id: answer, type: llm, config: { model: "many:${count}", stream: true } }]\n`

function startServer() {
  const dir = folder({ 'flood.yaml': agent(tokens), 'short.yaml': agent(100), 'millrace.config.mjs': config })
  return startMeasuredProcess(dir, 'http://127.0.0.1:9/v1')
}

interface Door {
  path: string
  /** The question, in this protocol. */
  question: object
  /** A token in its stream. */
  token: RegExp
  /** MB that are left while the slow reader is there. */
  left: number
}
const doors: Record<string, Door> = {
  'Chat Completions': {
    path: '/v1/chat/completions',
    question: { messages: [{ role: 'user', content: 'Hi' }] },
    token: /"content":"token "/gu,
    left: 20,
  },
  Responses: {
    path: '/v1/responses',
    question: { input: 'Hi' },
    token: /"delta":"token "/gu,
    // The last event has the whole text again.
    left: 30,
  },
}

const asked = ({ question }: Door, model: string) => JSON.stringify({ model, ...question, stream: true })

async function shortAnswer(url: string, door: Door): Promise<number> {
  const began = performance.now()
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(url + door.path, { method: 'POST', headers, body: asked(door, 'short') })
  const text = await response.text()
  expect(text.match(door.token)).toHaveLength(100)
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  return performance.now() - began
}

/** Asks for the flood, then takes a few bytes now and then. Gives the id of its run. */
async function askSlowly(url: string, door: Door) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  const body = asked(door, 'flood')
  const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
  socket.write(`POST ${door.path} HTTP/1.1\r\n${head}\r\n\r\n${body}`)
  await once(socket, 'readable')
  const run = /x-millrace-run-id: (\S+)/iu.exec(String(socket.read()))![1]!
  const sips = setInterval(() => socket.read(16), 100)
  socket.on('close', () => clearInterval(sips))
  return { socket, run }
}

/** Reads all of a run's log as it comes; how many tokens there were, and how it ended. */
async function follow(url: string, run: string) {
  const response = await fetch(`${url}/api/runs/${run}/events`, { headers: { accept: 'text/event-stream' } })
  const told = { tokens: 0, end: '' }
  let rest = ''
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    const frames = (rest + text).split('\n\n')
    rest = frames.pop()!
    for (const frame of frames) if (frame.includes('"type":"text-delta"')) told.tokens++
    told.end = frames.at(-1) ?? told.end
  }
  return told
}

describe.each(Object.entries(doors))('%s: load', (_, door) => {
  test(
    `a slow reader of ${tokens} tokens costs no memory, holds up no other reader of its run, and nobody else`,
    { timeout: 180_000 },
    async () => {
      const { url, measure } = await startServer()
      // What a first run leaves warm is no one's cost.
      await shortAnswer(url, door)
      const before = await measure()
      const { socket, run } = await askSlowly(url, door)
      const state = { most: 0, isOver: false }
      const following = follow(url, run).finally(() => (state.isOver = true))
      const waits: number[] = []
      while (!state.isOver) {
        waits.push(await shortAnswer(url, door))
        state.most = Math.max(state.most, (await measure()).heap - before.heap)
      }
      const { tokens: seen, end } = await following
      expect([seen, end]).toEqual([tokens, expect.stringContaining('"outcome":"completed"')])
      expect(waits.length).toBeGreaterThan(0)
      expect(Math.max(...waits)).toBeLessThan(5000)
      // The frames that it has not read are 150 MB; a run itself holds what it has said until it ends, 60 bytes a token.
      expect(socket.bytesRead).toBeLessThan(5 * MB)
      expectSize('most heap while a client is slow', state.most, 100 * MB)
      expectSize('heap afterwards', (await measure()).heap - before.heap, door.left * MB)
    },
  )
})
