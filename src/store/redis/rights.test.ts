/** What is said at the start when the user of the URL may not do all that a store does. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeRedis, freshPrefix, startRedis } from '../../../test/support/redis.ts'
import { redisStore } from './redis-store.ts'
import { commandOf, forms } from './rights.ts'

test('the commands that are looked at are those that are sent', () => {
  const sent = new Set<string>()
  for (const name of readdirSync(import.meta.dirname).filter(
    (each) => each.endsWith('.ts') && !each.includes('.test.'),
  )) {
    const text = readFileSync(join(import.meta.dirname, name), 'utf8')
    for (const [call] of text.matchAll(/redis\.call\([^,)]*/gu))
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
    ['no rights', ['~*', '&*', '+@connection'], /lacks rights: \+info\. docs\/scale\.md/u],
    ['a command less', [...all, '-xadd'], /lacks rights: \+xadd\. docs\/scale\.md lists all/u],
    ['two commands less', [...all, '-hset', '-memory|usage'], /lacks rights: \+hset \+memory\|usage\. docs/u],
    ['no scripts', [...all, '-eval', '-evalsha'], /lacks rights: \+eval/u],
    ['no channels', ['~*', '+@all'], /lacks rights: &\{PREFIX\*\. /u],
    ['keys of its own', ['~own:*', '&*', '+@all'], /lacks rights: ~\{PREFIX\*\. /u],
    ['nothing to write', [...all, '-@write'], /lacks rights: .*\+hset.* \+xadd/u],
    ['keys to read only', ['%R~*', '&*', '+@all'], /lacks rights: ~\{PREFIX\*\. /u],
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
})
