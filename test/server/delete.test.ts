/** `DELETE /api/runs/:id` and `/api/threads/:id`: what goes, what is refused, and why. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { createScriptedModel, finish, latch, text } from '../../src/models/testing/scripted-model.ts'
import type { Store } from '../../src/part/log.ts'
import { withRunFiles } from '../../src/record/run-files.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { sqliteStore } from '../../src/store/sqlite/store.ts'
import { folder } from '../support/cli.ts'
import { agent, until } from '../support/engine.ts'
import { createTold, type Told } from '../support/going-on.ts'
import { describeRedis, freshPrefix } from '../support/redis.ts'
import { startServer, type TestServer } from '../support/server.ts'

let server: TestServer
afterEach(() => server?.close())

const start = async (threadId: string, { post } = server): Promise<string> => {
  const input = { messages: [{ role: 'user', content: 'Hi' }] }
  return ((await (await post('/api/runs', { agentId: 'a', threadId, input })).json()) as { id: string }).id
}
const ended = async (threadId: string, at = server) => {
  const id = await start(threadId, at)
  await until(at.store, id, ({ type }) => type === 'run-end')
  return id
}
const send = async (method: string, path: string, { url } = server) => {
  const response = await fetch(url + path, { method })
  return { status: response.status, body: (await response.json()) as any }
}

test('ended runs and conversations go with their files; active ones are refused with the cure', async () => {
  const dir = join(folder(), 'runs')
  mkdirSync(dir)
  const gate = latch()
  const scripts = [...'12345'].map((word) => [text(word), finish()])
  server = await startServer({
    agents: { a: agent() },
    scripts: { m: createScriptedModel([...scripts, [gate, finish()]]) },
    wrapStore: (store) => ({ ...store, upkeep: withRunFiles(store.upkeep!, dir) }),
  })
  const [one, two, three, other, last] = [
    await ended('t'),
    await ended('t'),
    await ended('u'),
    await ended('w'),
    await ended('x'),
  ]
  for (const run of [one, three])
    for (const ending of ['ndjson', 'summary.json', 'main%2Fcode.raw'])
      writeFileSync(join(dir, `${run}.${ending}`), '{}')

  expect(await send('DELETE', `/api/runs/${three}`)).toEqual({ status: 200, body: { deleted: [three] } })
  expect((await send('GET', `/api/runs/${three}`)).status).toBe(404)
  expect(readdirSync(dir).filter((name) => name.startsWith(three))).toEqual([])
  expect(await send('DELETE', `/api/runs/${three}`)).toMatchObject({
    status: 404,
    body: { error: { code: 'unknown-run' } },
  })
  expect(await send('DELETE', '/api/threads/t')).toEqual({ status: 200, body: { deleted: [two, one] } })
  expect(readdirSync(dir)).toEqual([])
  expect(await send('DELETE', '/api/threads/t')).toMatchObject({
    status: 404,
    body: { error: { code: 'unknown-thread' } },
  })

  const active = await start('w')
  await gate.reached
  const stop = { code: 'run-kept', message: expect.stringContaining(`Stop it first: millrace stop ${active}`) }
  for (const path of [`/api/runs/${active}`, `/api/runs/${other}`, '/api/threads/w'])
    expect(await send('DELETE', path)).toMatchObject({ status: 409, body: { error: stop } })
  gate.open()
  await until(server.store, active, ({ type }) => type === 'run-end')
  expect(await send('DELETE', '/api/threads/w')).toMatchObject({ status: 200 })
  expect((await send('GET', `/api/runs/${last}`)).status).toBe(200)
})

test('the source of a fork is refused while the fork shares its log', async () => {
  const model = createScriptedModel([[text('1'), finish()]])
  server = await startServer({ agents: { a: agent() }, scripts: { m: model } })
  const source = await ended('v')
  await server.store.log.fork(source, 2, 'fork')
  const shared = { code: 'run-kept', message: `Forks share the log of run ${source}: fork. Delete them first.` }
  expect(await send('DELETE', `/api/runs/${source}`)).toMatchObject({ status: 409, body: { error: shared } })
})

/** Two servers on one store. None deletes before as many have come to it as wanted. */
async function two(stores: Store[], config = '') {
  let wanted = 0
  let waiting = Promise.withResolvers<void>()
  const both = () => {
    wanted = stores.length
    waiting = Promise.withResolvers()
  }
  const meet = async () => {
    if (--wanted === 0) waiting.resolve()
    if (wanted >= 0) await waiting.promise
  }
  const servers: TestServer[] = []
  const models: Told[] = []
  for (const store of stores) {
    const wrapStore = (own: Store): Store => {
      void own.close()
      const drop: NonNullable<Store['upkeep']>['drop'] = async (run, options) => {
        await meet()
        return store.upkeep!.drop(run, options)
      }
      return { ...store, upkeep: { ...store.upkeep!, drop } }
    }
    const m = createTold(() => [text('Hello'), finish()])
    const one = await startServer({ agents: { a: agent('', config) }, scripts: { m }, wrapStore })
    onTestFinished(() => one.close())
    servers.push(one)
    models.push(m)
  }
  return { servers, models, both }
}

function deletedElsewhere(open: () => Promise<Store[]>): void {
  test('what is deleted at one server is not told to the model at another, which had it in memory', async () => {
    const { servers, models } = await two(await open(), 'history: server')
    const [first, second] = servers as [TestServer, TestServer]
    const asked = () => JSON.stringify(models[1]!.prompts.at(-1))
    const say = async (word: string, at: TestServer) => {
      const input = { messages: [{ role: 'user', content: word }] }
      const { id } = (await (await at.post('/api/runs', { agentId: 'a', threadId: 't', input })).json()) as {
        id: string
      }
      // Not where it ran: there its entries wait for a first reader.
      await until(first.store, id, ({ type }) => type === 'run-end')
      return id
    }
    await say('kept', second)
    const secret = await say('secret', second)
    await say('later', second)
    expect(asked()).toMatch(/kept.*secret.*later/u)
    expect(await send('DELETE', `/api/runs/${secret}`, first)).toMatchObject({ status: 200 })
    for (const path of [`runs/${secret}`, `runs/${secret}/events`, `runs/${secret}/export`, 'threads/t']) {
      expect(await (await fetch(`${second.url}/api/${path}`)).text()).not.toContain('"secret"')
    }
    await say('last', second)
    expect(asked()).toMatch(/kept.*later.*last/u)
    expect(asked()).not.toContain('secret')
  })
}

function twoAtOnce(open: () => Promise<Store[]>): void {
  test('two at once at two servers: one deletes, the other is told that there is none', async () => {
    const { servers, both } = await two(await open())
    for (const what of ['run', 'thread']) {
      const id = await ended(`of ${what}`, servers[0])
      both()
      const path = what === 'run' ? `/api/runs/${id}` : `/api/threads/of%20${what}`
      const told = await Promise.all(servers.map((each) => send('DELETE', path, each)))
      const [deleted, refused] = told.toSorted((a, b) => a.status - b.status)
      expect(deleted).toEqual({ status: 200, body: { deleted: [id] } })
      expect(refused).toEqual(await send('DELETE', path, servers[0]))
      expect(refused).toMatchObject({ status: 404, body: { error: { code: `unknown-${what}` } } })
    }
  })
}

describe('on SQLite', () => {
  const open = async () => {
    const file = join(folder(), 'shared.db')
    return [sqliteStore(file), sqliteStore(file)]
  }
  twoAtOnce(open)
  deletedElsewhere(open)
})

describeRedis('on Redis', (redis) => {
  const open = async () => {
    const url = `${redis().url}?prefix=${freshPrefix()}`
    return [await redisStore(url), await redisStore(url)]
  }
  twoAtOnce(open)
  deletedElsewhere(open)
})
