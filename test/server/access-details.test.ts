/** Details of errors, which name addresses, paths and variables: operators see them, the user whose run it is does not. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel } from '../../src/models/scripted.ts'
import { runUserOf } from '../../src/part/principal.ts'
import { agent } from '../support/engine.ts'
import { callers, createTestAccess, headersFor } from '../support/callers.ts'
import { readBody, startServer } from '../support/server.ts'

const secret = 'host-10-0-0-7'

describe('details of errors', () => {
  test.each(['alice', 'operator'] as const)('%s, over every route that shows the run', async (caller) => {
    const m = createScriptedModel(() => {
      throw new Error(`no route to ${secret}`)
    })
    const server = await startServer({ agents: { a: agent() }, scripts: { m } }, { access: createTestAccess() })
    onTestFinished(() => server.close())
    const messages = [{ role: 'user', content: 'Hi' }]
    const user = runUserOf(callers.alice)!
    const { id, result } = await server.runtime.start('a', { messages }, { threadId: 't', user, protocol: 'ui' })
    expect((await result).error!.detail).toContain(secret)
    const thread = encodeURIComponent(caller === 'alice' ? 't' : 't@@acme/alice')
    const run = `/api/runs/${id}`
    const paths = [run, `${run}?at=7`, `${run}/events`, `${run}/export`, `${run}/replay?speed=max`, `${run}/outline`]
    const lists = ['/api/runs', `/api/threads/${thread}`, `/api/search?q=route`, `/api/diff?a=${id}&b=${id}`]
    const shows: string[] = []
    // A user first: what is kept of the run is not what it sees of it.
    for (const path of [...paths, ...lists]) {
      const response = await fetch(server.url + path, { headers: headersFor(caller) })
      if ((await response.text()).includes(secret)) shows.push(path)
    }
    for (const [path, end] of [
      ['/api/live?rows=1', '"status":"failed"'],
      ['/api/events?after=0&types=run-end', 'failed'],
    ] as const) {
      const body = readBody(await fetch(server.url + path, { headers: headersFor(caller) }))
      if ((await body.until(end)).includes(secret)) shows.push(path)
      await body.leave()
    }
    if (caller === 'alice') expect(shows).toEqual([])
    else expect(shows).toEqual(expect.arrayContaining([run, `${run}/events`, '/api/runs', '/api/live?rows=1']))
    const operators = await fetch(server.url + run, { headers: headersFor('operator') })
    expect(await operators.text()).toContain(secret)
  })
})
