/** What is said at the start when the user of the URL may not do all that a store does. */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeRedis, freshPrefix, startRedis } from '../../../test/support/redis.ts'
import { openArchive } from '../archive/archive.ts'
import { redisStore } from './redis-store.ts'
import { commandOf, forms } from './connection.ts'

test('the commands that are looked at are those that are sent', () => {
  const sent = new Set<string>()
  for (const name of readdirSync(import.meta.dirname).filter(
    (each) => each.endsWith('.ts') && !each.includes('.test.'),
  )) {
    const text = readFileSync(join(import.meta.dirname, name), 'utf8')
    for (const [call] of text.matchAll(/(?:redis\.p?call|\bhint|\bask)\([^,)]*/gu))
      for (const [, command] of call.matchAll(/'([A-Z]+)'/gu)) sent.add(command!.toLowerCase())
    for (const [, command, sub] of text.matchAll(/\[\s*'([A-Z]+)'(?:, '([A-Z]+)')?/gu))
      sent.add((sub === undefined ? command! : `${command}|${sub}`).toLowerCase())
  }
  // Those of the client library.
  for (const command of ['ping', 'ssubscribe', 'sunsubscribe', 'cluster|slots']) sent.add(command)
  // An argument that begins a line.
  sent.delete('limit')
  expect(forms.map(commandOf).toSorted()).toEqual([...sent].toSorted())
})

describeRedis('a user of Redis', (redis) => {
  const all = ['~*', '&*', '+@all']
  test.each([
    ['no rights', ['~*', '&*', '+@connection'], /lacks rights: \+info\. docs\/redis\.md/u],
    ['a command less', [...all, '-xadd'], /lacks rights: \+xadd\. docs\/redis\.md lists all/u],
    ['two commands less', [...all, '-hset', '-memory|usage'], /lacks rights: \+hset \+memory\|usage\. docs/u],
    ['no scripts', [...all, '-eval', '-evalsha'], /lacks rights: \+eval/u],
    ['no channels', ['~*', '+@all'], /lacks rights: &\{PREFIX:\*\. /u],
    ['keys of its own', ['~own:*', '&*', '+@all'], /lacks rights: ~\{PREFIX\}\* ~\{PREFIX:\*\. /u],
    ['nothing to write', [...all, '-@write'], /lacks rights: .*\+hset.* \+xadd/u],
    ['keys to read only', ['%R~*', '&*', '+@all'], /lacks rights: ~\{PREFIX\}\* ~\{PREFIX:\*\. /u],
  ])('with %s is refused at once; the error names the right and no user', async (_, rights, message) => {
    await redis().command('ACL', 'SETUSER', 'ada', 'reset', 'on', '>secret', ...rights)
    const prefix = freshPrefix()
    const began = performance.now()
    const fault = await redisStore(`redis://ada:secret@127.0.0.1:${redis().port}?prefix=${prefix}`).then(
      () => undefined,
      (error: Error & { code: string; detail?: string }) => error,
    )
    expect(fault).toMatchObject({ code: 'store-failed' })
    expect(fault!.message.replaceAll(prefix, 'PREFIX')).toMatch(message)
    expect(JSON.stringify([fault!.message, fault!.detail, String(fault!.cause)])).not.toMatch(/\bada\b|secret/u)
    expect(performance.now() - began).toBeLessThan(4000)
  })

  test('with the rights that an error names may use its keys, and none of a prefix that begins with the same letters', async () => {
    const [prefix, ...others] = ['', '2', '-b', '.b'].map((end) => `shop${end}`) as [string, ...string[]]
    const url = (name: string) => `redis://ada:secret@127.0.0.1:${redis().port}?prefix=${name}`
    const set = (...rights: string[]) => redis().command('ACL', 'SETUSER', 'ada', 'reset', 'on', '>secret', ...rights)
    const rightsOf = async (name: string) => {
      const fault = await redisStore(url(name)).then(
        () => undefined,
        (error: Error) => error,
      )
      return /lacks rights: (.*)\. docs/u.exec(fault!.message)![1]!.split(' ')
    }
    await set('&*', '+@all')
    const keys = await rightsOf(prefix)
    await set(...keys, '+@all')
    const channels = await rightsOf(prefix)
    await set(...keys, ...channels, '+@all')
    const store = await redisStore(url(prefix))
    await store.runs.list()
    await store.fleet.want('r')
    await store.close()
    for (const other of others) expect(await rightsOf(other)).toEqual([`~{${other}}*`, `~{${other}:*`])
    for (const other of others) {
      await set(`~{${other}*`, ...keys, ...channels, '+@all')
      expect(await rightsOf(other)).toEqual([`&{${other}:*`])
    }
  })

  test('without a password, where one is needed, is told to write one', async () => {
    const server = await startRedis()
    await server.command('CONFIG', 'SET', 'requirepass', 'secret')
    await expect(redisStore(server.url)).rejects.toThrow(/asks for a password; write redis:\/\/user:password@host/u)
    await server.close()
  })

  test('who only reads needs less', async () => {
    await redis().command('ACL', 'SETUSER', 'ada', 'reset', 'on', '>secret', ...all, '-xadd')
    const url = `redis://ada:secret@127.0.0.1:${redis().port}?prefix=${freshPrefix()}`
    await (await redisStore(url, { joins: false })).close()
  })

  test.each([
    ['a right that is needed at the start is missing', '-srem', 'secret'],
    ['the password is wrong', '+srem', 'wrong'],
  ])('when %s, no connection stays open, and the archive is closed', async (_, right, password) => {
    await redis().command('ACL', 'SETUSER', 'ada', 'reset', 'on', '>secret', ...all, right)
    const archive = openArchive(mkdtempSync(join(tmpdir(), 'millrace-rights-')))
    let closed = 0
    const counted = { ...archive, close: async () => void closed++ }
    const url = `redis://ada:${password}@127.0.0.1:${redis().port}?prefix=${freshPrefix()}`
    await expect(redisStore(url, { joins: false, archive: counted })).rejects.toMatchObject({ code: 'store-failed' })
    expect(closed).toBe(1)
    await expect.poll(() => redis().command('CLIENT', 'LIST')).not.toContain('user=ada')
  })
})
