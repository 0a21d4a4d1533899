import { expect, test } from 'vitest'
import { createKeys, messageKey, partitionOf, storedKey } from './keys.ts'
import { isRedisUrl, parseRedisUrl, redactUrl } from './url.ts'

test.each([
  ['redis://h', { hosts: [{ host: 'h', port: 6379 }], tls: false, database: 0, prefix: 'millrace' }],
  [
    'rediss://ada:p%40ss@h:7000/3?prefix=shop',
    { hosts: [{ host: 'h', port: 7000 }], tls: true, username: 'ada', password: 'p@ss', database: 3, prefix: 'shop' },
  ],
  ['redis://:secret@[::1]:1', { hosts: [{ host: '::1', port: 1 }], tls: false, password: 'secret', database: 0 }],
  [
    'rediss://h?ca=/a/ca.pem&cert=c&key=k',
    {
      hosts: [{ host: 'h', port: 6379 }],
      tls: true,
      prefix: 'millrace',
      files: { ca: '/a/ca.pem', cert: 'c', key: 'k' },
    },
  ],
  [
    'REDIS://a,b:2',
    {
      hosts: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 2 },
      ],
      tls: false,
    },
  ],
])('%s', (url, address) => {
  expect(isRedisUrl(url)).toBe(true)
  expect(parseRedisUrl(url)).toMatchObject(address)
})

test.each([
  ['redis://'],
  ['redis://user:secret@'],
  ['redis://user:secret@host:99999'],
  ['redis://user:secret@host/name'],
  ['redis://user:secret@host?tls=1'],
  ['redis://user:secret@host?ca=a'],
  ['rediss://user:secret@host?cert=a'],
  ['redis://user:sec%ret@host'],
  ['redis://user:secret?@host'],
  ['redis://user:secret#1@host?prefix=a'],
  ['redis://user:secret/1@host'],
  ['redis://user:a@secret@host:x'],
])('%s is refused, and neither the error nor the place shows the secret', (url) => {
  expect(redactUrl(url)).not.toMatch(/sec|user/u)
  let message = ''
  try {
    parseRedisUrl(url)
  } catch (error) {
    message = JSON.stringify([error, String(error), (error as { code: string }).code])
  }
  expect(message).toMatch(/bad-config/u)
  expect(message).not.toMatch(/sec|user:[^p]/u)
})

test('what is shown has the place and the prefix', () => {
  expect(redactUrl('rediss://u:p@h1:1,h2:2/4?prefix=shop')).toBe('rediss://h1:1,h2:2/4?prefix=shop')
})

test('a prefix that would break the layout is refused', () => {
  for (const prefix of ['', 'a}b', 'a b', 'x'.repeat(65)])
    expect(() => createKeys(prefix)).toThrow(expect.objectContaining({ code: 'bad-config' }))
})

test('a run and its inbox are in one partition, and the partitions are about equal', () => {
  const keys = createKeys('p')
  expect(keys.run('r').startsWith(keys.tagOf('r'))).toBe(true)
  expect(keys.messages('r').startsWith(keys.tagOf('r'))).toBe(true)
  const counts = Array.from({ length: 16 }, () => 0)
  for (let i = 0; i < 16_000; i++) counts[partitionOf(`run-${i}`)]!++
  expect(Math.min(...counts)).toBeGreaterThan(800)
  expect(Math.max(...counts)).toBeLessThan(1200)
})

test('the key of a message has no line break as it is stored', () => {
  for (const key of ['answer:1', 'a\nb', '100%', '%0A', 'é']) {
    expect(storedKey(key)).not.toContain('\n')
    expect(messageKey(storedKey(key))).toBe(key)
  }
  expect(storedKey('answer:1')).toBe('answer:1')
})
