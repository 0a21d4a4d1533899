/** What docs/redis.md says of Redis is true of one: the rights of its user, and the settings. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Entry } from '../../src/part/entry.ts'
import { auditRow } from '../../src/store/contract/ledger.contract.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import { describeRedis, startRedis } from '../support/redis.ts'
import { readDocument } from './documents.ts'

const page = readDocument('docs/redis.md')

const start = { type: 'run-start', agent: 'a', pipeline: '', threadId: 't', protocol: 'api', input: { messages: [] } }
const startOf = (runId: string) => [{ seq: 1, timestamp: Date.now(), step: '', ...start, runId } as Entry]
const endOf = (seq: number): Entry[] => [
  { seq, timestamp: Date.now(), step: '', type: 'run-end', outcome: 'completed' } as Entry,
]

describeRedis('Redis as docs/redis.md sets it up', (redis) => {
  test('its user may do what a store does, and nothing else', async () => {
    const [line] = /^ACL SETUSER .*$/mu.exec(page)!
    expect(await redis().command(...line.split(' '))).toBe('+OK')
    const { port } = redis()
    const address = `redis://millrace:secret@127.0.0.1:${port}`
    const [one, other] = await Promise.all([redisStore(address), redisStore(address)])
    const leave = new AbortController()
    try {
      await one.log.append('r1', 1, startOf('r1'))
      const seen: string[] = []
      const reading = (async () => {
        for await (const entries of other.log.read('r1', { signal: leave.signal }))
          seen.push(...entries.map(({ type }) => type))
      })()
      await one.log.post('r1', 'stop', { kind: 'stop' })
      for await (const { key } of other.log.inbox('r1')) expect(key).toBe('stop')
      other.fleet.attend('r1')()
      await one.fleet.attended('r1')
      await one.fleet.want('r1', Date.now() + 60_000)
      await one.runs.keepView('r1', 1, {})
      await one.log.fork('r1', 1, 'r2')
      await one.log.append('r1', 1, endOf(2))
      await reading
      expect(seen).toEqual(['run-start', 'run-end'])
      await other.runs.list({ agent: 'a', idPrefix: 'r', limit: 5 })
      await other.log.position()
      const until = Date.now() + 60_000
      await one.ledger!.add('b', [{ key: 'k', amount: 1, until }], { key: 'r1', position: 1, until })
      expect(await other.ledger!.read('b', ['k'])).toEqual([1])
      await one.audit!.add(auditRow())
      expect(await other.audit!.list()).toHaveLength(1)
      expect(await one.audit!.prune(until)).toBe(1)
      await one.upkeep?.uncompacted(Infinity, 5)
      await one.upkeep?.compact('r1')
      await one.upkeep?.expired(Infinity)
      await one.upkeep?.size()
      await one.upkeep?.vacuum()
      await one.upkeep?.drop('r2')
    } finally {
      leave.abort()
      await Promise.all([one.close(), other.close()])
    }
    for (const other of ['other', 'millrace2', 'millrace-b'])
      await expect(redisStore(`${address}?prefix=${other}`)).rejects.toThrow(/lacks rights: ~/u)
    const rights = await redis().command('ACL', 'DRYRUN', 'millrace', 'FLUSHALL')
    expect(rights).toContain('no permissions')
    for (const refused of [
      ['CONFIG', 'GET', 'dir'],
      ['KEYS', '*'],
      ['SHUTDOWN'],
      ['GET', 'somebody-elses'],
      ['GET', '{millrace2:1}:clock'],
      ['GET', '{millrace2}:format'],
      ['SPUBLISH', '{millrace2:1}:changed', 'x'],
    ]) {
      expect(await redis().command('ACL', 'DRYRUN', 'millrace', ...refused), refused.join(' ')).toContain('permissions')
    }
  })

  test('the settings of redis.conf are settings', async () => {
    const [, block] = /^```text\n(appendonly [^]*?)^```$/mu.exec(page)!
    const flags = block!
      .trim()
      .split('\n')
      .flatMap((line) => {
        const [name, value] = line.split(' ')
        return [`--${name}`, value === '""' ? '' : value!]
      })
    const server = await startRedis({ flags })
    expect(await server.command('CONFIG', 'GET', 'maxmemory-policy')).toContain('noeviction')
    expect(await server.command('CONFIG', 'GET', 'maxmemory')).toContain(String(8 * 2 ** 30))
    await server.close()
  })
})

test('the design lists every key and channel of Redis, and the page what bounds each key', () => {
  const folder = 'src/store/redis'
  const sources = readdirSync(folder).filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  const text = sources.map((file) => readFileSync(`${folder}/${file}`, 'utf8')).join('\n')
  const found = text.matchAll(/(?:T \.\. '|\(partition\)\}|\(id\)\)\}|:fleet\}):([a-z]+)|\bof\('([a-z]+)'\)/gu)
  const names = [...new Set(Array.from(found, ([, inScript, inKeys]) => inScript ?? inKeys!))]
  expect(names.length).toBeGreaterThan(20)
  const design = readDocument('decisions/0025-redis.md')
  expect(names.filter((name) => !new RegExp(`[T}]:${name}[:\`]`, 'u').test(design))).toEqual([])
  const isChannel = (name: string) => /^(?:bell|changed|live|note|readers)$/u.test(name)
  const isBounded = (name: string) => new RegExp(`\\| .*\`${name}:?\``, 'u').test(page)
  expect(names.filter((name) => !isChannel(name) && !isBounded(name))).toEqual([])
})
