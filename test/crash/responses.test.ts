/** A server that is killed (SIGKILL) in the middle of a response and started anew: what the client had and the rest are the whole, byte for byte. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { entriesOf } from '../support/engine.ts'
import { startKillableServer } from '../support/killable-server.ts'
import { lastNumberOf, readResponseStream, responseFrames } from '../support/response-stream.ts'

const yaml = 'recover: true\nworkflow: [{ id: answer, type: llm, config: { model: "up:m", stream: true } }]\n'
const answer = ['One ', 'two ', 'three ', 'four.']

// Before the first word, between words, and once all is said but the end.
test.each([0, 2, answer.length])('killed after %d words', async (said) => {
  const server = await startKillableServer({ 'desk.yaml': yaml }, async (reply, n) => {
    const isFirst = n === 1
    for (const [i, word] of answer.entries()) {
      if (isFirst && i === said) await reply.left
      reply.say(word)
    }
    if (isFirst && said === answer.length) await reply.left
    reply.finish()
  })
  const first = await readResponseStream(
    fetch(`${server.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'desk', input: 'Count', stream: true }),
    }),
  )
  const deltas = () => first.frames().filter((frame) => frame.startsWith('event: response.output_text.delta')).length
  for (let n = 2; n === 2 || deltas() < said; n++) await first.reaches(n)
  await server.kill()
  await first.end
  const had = first.frames()
  await server.start()
  const rest = await readResponseStream(
    fetch(`${server.url}/v1/responses/resp_${first.run}?stream=true&starting_after=${lastNumberOf(had)}`),
  )
  await rest.end
  const body = rest.frames().join('')
  expect(body).toContain('event: response.completed')
  expect(body).toContain('One two three four.')
  await server.kill()
  const store = sqliteStore(join(server.dir, 'data', 'millrace.db'))
  const whole = responseFrames(await entriesOf(store, first.run), 'desk')
  await store.close()
  expect(had.join('') + body).toBe(whole)
})
