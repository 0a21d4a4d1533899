/** The commands about runs, on a store that servers share: named by a flag, by the environment, and by a config. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { finish, latch, text, toolCall } from '../../src/models/testing/scripted-model.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { folder, ran } from '../support/cli.ts'
import { agent, createEngine, until } from '../support/engine.ts'
import { createTold, resultsIn } from '../support/going-on.ts'
import { describeRedis, freshPrefix, type RedisServer } from '../support/redis.ts'

const password = 'h0rse-b4ttery'

/** A process of the fleet with runs: two that have ended, one that waits, one that is active. */
async function fleet(redis: RedisServer) {
  const address = `${redis.url}?prefix=${freshPrefix()}`
  const store = await redisStore(address)
  const gate = latch()
  const script = createTold((prompt) => {
    const said = JSON.stringify(prompt)
    if (said.includes('choose') && resultsIn(prompt).size === 0) return [toolCall('c1', 'choose'), finish('tool-calls')]
    return said.includes('long') ? [text('Half'), gate, text('!'), finish()] : [text('Hello there'), finish()]
  })
  const engine = createEngine({
    agents: { a: agent('tools: [{ name: choose, client: true }]') },
    scripts: { m: script },
    wrapStore(own) {
      void own.close()
      return store
    },
  })
  onTestFinished(async () => {
    gate.open()
    await engine.close()
  })
  await engine.runtime.recover()
  await store.fleet.introduce!({ url: 'http://127.0.0.1:1' })
  const start = async (content: string, threadId: string) =>
    engine.runtime.start('a', { messages: [{ role: 'user', content }] }, { threadId })
  const [one, two] = [await start('Hi', 'thread_1'), await start('Hi again', 'thread_2')]
  await Promise.all([one.result, two.result])
  const [waits, active] = [await start('Please choose', 'thread_3'), await start('Be long', 'thread_4')]
  await until(store, waits.id, ({ type }) => type === 'suspend')
  await until(store, active.id, ({ type }) => type === 'text-delta')
  // Redis takes any password of a user who has none.
  const url = address.replace('redis://', `redis://default:${password}@`)
  return { url, store, one: one.id, two: two.id, waits: waits.id, active: active.id }
}

describeRedis('a shared store', (redis) => {
  test('every command about runs works on it, and none says its password', { timeout: 60_000 }, async () => {
    const { url, store, one, two, waits, active } = await fleet(redis())
    const cwd = folder({})
    const on = async (args: string[], how: 'flag' | 'environment' = 'flag') => {
      const env: Record<string, string> = how === 'flag' ? {} : { MILLRACE_STORE: url }
      const given = how === 'flag' ? [...args, '--store', url] : args
      const done = await ran(given, { cwd, env })
      expect(done.out + done.err, args[0]).not.toContain(password)
      // As of `diff` of Unix: 1 if there is a difference.
      const code = args[0] === 'diff' ? 1 : 0
      expect([args[0], done.code, done.code === code ? '' : done.err]).toEqual([args[0], code, ''])
      return done
    }
    for (const how of ['flag', 'environment'] as const) {
      const { out } = await on(['ps'], how)
      for (const id of [one, two, waits, active]) expect(out).toContain(id)
      expect(out).not.toContain('no server')
    }
    expect((await on(['logs', one])).out).toContain('Hello there')
    expect((await on(['show', one])).out).toMatch(new RegExp(`^${one} {2}a {2}completed`, 'u'))
    expect((await on(['replay', one, '--speed', 'max'])).out).toContain('Hello there')
    const exported = (await on(['export', one])).out
    expect(exported.trim().split('\n')).toHaveLength((await store.runs.get(one))!.lastSeq)
    expect((await on(['diff', one, two])).out).toContain('They part at entry 1: input differs.')
    expect((await on(['threads'])).out).toContain('thread_1')
    expect((await on(['stats'])).out).toMatch(/runs +4: 2 completed, 1 running, 1 suspended/u)
    expect((await on(['verify', 'all'])).err).toMatch(/4 checked, 0 errors, 2 not ended\n$/u)

    // A process that owns the run sees both.
    expect((await on(['answer', waits, 'blue'])).out).toContain('Hello there')
    expect((await store.runs.get(waits))!.status).toBe('completed')
    expect((await on(['stop', active])).err).toContain(`stopping ${active}`)
    await until(store, active, ({ type }) => type === 'run-end')
    expect((await store.runs.get(active))!.status).toBe('aborted')
  })

  test('a config names it as well; what needs tables says what to do instead; no error has the password', async () => {
    const { url, one } = await fleet(redis())
    const cwd = folder({ 'agents/a.yaml': agent() })
    const env = { MILLRACE_STORE: url }
    for (const [args, cure] of [
      [['query', 'select 1'], 'Use millrace ps, stats and threads'],
      [['reindex'], 'There is nothing to build again.'],
      [['serve', '--log-files', '--port', '0'], 'Use record.archive'],
      [['show', 'run_none'], 'run_none'],
    ] as const) {
      const { code, out, err } = await ran([...args], { cwd, env })
      expect([args[0], code === 0, err]).toEqual([args[0], false, expect.stringContaining(cure)])
      expect(out + err).not.toContain(password)
    }
    const stranger = url.replace('//default:', '//stranger:')
    const refused = await ran(['ps'], { cwd, env: { MILLRACE_STORE: stranger } })
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('WRONGPASS')])
    expect(refused.out + refused.err).not.toContain(password)
    // A server says so at its start, and not in its first run.
    await redis().command('ACL', 'SETUSER', 'limited', 'on', `>${password}`, '~*', '&*', '+@all', '-xadd')
    const limited = url.replace('//default:', '//limited:')
    for (const [store, cure] of [
      [stranger, 'check user and password of the URL'],
      [limited, 'lacks rights: +xadd. docs/redis.md lists all'],
    ] as const) {
      const { code, out, err } = await ran(['serve', '--port', '0', '--store', store], { cwd })
      expect([code, err]).toEqual([1, expect.stringContaining(cure)])
      expect(out + err).not.toMatch(new RegExp(`${password}|stranger|limited`, 'u'))
    }
    writeFileSync(join(cwd, 'agents/millrace.config.mjs'), `export default { record: { store: '${url}' } }\n`)
    const listed = await ran(['ps'], { cwd })
    expect([listed.code, listed.out + listed.err]).toEqual([0, expect.stringContaining(one)])
    expect(listed.out + listed.err).not.toContain(password)
  })
})
