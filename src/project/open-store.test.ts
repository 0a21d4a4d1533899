import { describe, expect, test } from 'vitest'
import { archiveOf, storeUrlOf } from './open-store.ts'

const [flag, variable, config] = ['redis://flag:1', 'rediss://variable:2', 'redis://config:3']

describe('openStore', () => {
  test.each([
    [flag, variable, config, flag],
    [undefined, variable, config, variable],
    [' ', ` ${variable}\n`, config, variable],
    ['', '', config, config],
    [undefined, undefined, undefined, undefined],
    ['', ' ', '', undefined],
  ])('the store is that of the flag, the environment, or the config: %j %j %j', (given, env, store, expected) => {
    const record = store === undefined ? {} : { store }
    expect(storeUrlOf(record, given, env === undefined ? {} : { MILLRACE_STORE: env })).toBe(expected)
  })

  test.each([
    ['user:s3cret@host', 'The store must be a URL. Write redis://host:6379, or rediss:// for TLS.'],
    ['/s3cret.db', 'The store must be a URL.'],
    ['reddis://user:s3cret@host', 'There is no store for reddis:// (did you mean "redis"?).'],
    ['valkeys://:s3cret@host', 'There is no store for valkeys:// (for Valkey, too, write rediss://).'],
    ['postgres://u:s3cret@host/db', 'There is no store for postgres://. Write redis://host:6379'],
  ])('%s is refused with the cure, and without what may be a password', (url, words) => {
    for (const read of [() => storeUrlOf({}, url, {}), () => storeUrlOf({ store: url }, undefined, {})]) {
      let message = ''
      try {
        read()
      } catch (error) {
        expect(error).toMatchObject({ code: 'bad-store' })
        message = (error as Error).message
      }
      expect(message).toContain(words)
      expect(message).not.toContain('s3cret')
    }
  })

  test('a wrong URL that another one overrides is not looked at', () => {
    expect(storeUrlOf({ store: 'nothing' }, flag, { MILLRACE_STORE: 'nothing' })).toBe(flag)
  })

  test('the archive is that of the environment, or of the config', () => {
    expect(archiveOf({ archive: 'a' }, { MILLRACE_ARCHIVE: ' b ' })).toBe('b')
    expect(archiveOf({ archive: 'a' }, { MILLRACE_ARCHIVE: ' ' })).toBe('a')
    expect(archiveOf({}, {})).toBeUndefined()
  })
})
