import { expect, test } from 'vitest'
import { ago, bytes, cachedShare, cost, count, duration, shortId, tokens, tokenSides } from './format.ts'

test.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [1234, '1.2 s'],
  [59_940, '59.9 s'],
  [59_960, '1m 00s'],
  [75_000, '1m 15s'],
  [7_200_000, '2h 00m'],
])('%i ms is %s', (ms, text) => expect(duration(ms)).toBe(text))

test('the share of the input that came from a cache', () => {
  expect(cachedShare({ inputTokens: 2000, cachedInputTokens: 1640 })).toBe('82%')
  expect(cachedShare({ inputTokens: 3, cachedInputTokens: 0 })).toBe('0%')
  // Some providers count cached tokens apart from input.
  expect(cachedShare({ inputTokens: 10, cachedInputTokens: 40 })).toBe('100%')
  expect([cachedShare({ inputTokens: 10 }), cachedShare({ cachedInputTokens: 0, inputTokens: 0 })]).toEqual([
    undefined,
    undefined,
  ])
})

test('both sides of a usage', () => {
  expect([
    tokenSides({ inputTokens: 2000, cachedInputTokens: 1640, outputTokens: 130, source: 'reported' }),
    tokenSides({ inputTokens: 12, outputTokens: 5, source: 'estimated' }),
    tokenSides({}),
  ]).toEqual(['2,000 in (82% from the cache), 130 out', '12 in, 5 out, estimated', '0 in, 0 out'])
})

test('counts, money, bytes, ages, ids', () => {
  expect([count(950), count(12_345), count(4_200_000)]).toEqual(['950', '12.3k', '4.2M'])
  expect([
    cost(undefined),
    cost(0),
    cost(3e-7),
    cost(0.000123),
    cost(0.002),
    cost(0.00123),
    cost(0.42),
    cost(12.345),
  ]).toEqual(['–', '$0', '<$0.0001', '$0.0001', '$0.0020', '$0.0012', '$0.420', '$12.35'])
  expect([
    tokens(undefined),
    tokens({}),
    tokens({ inputTokens: 3, outputTokens: 4 }),
    tokens({ totalTokens: 0 }),
  ]).toEqual(['–', '–', '7', '0'])
  expect([bytes(5), bytes(12_000), bytes(3 * 1024 ** 2)]).toEqual(['5 B', '11.7 KB', '3.0 MB'])
  expect([ago(0, 1000), ago(0, 42_000), ago(0, 300_000), ago(0, 1e9)]).toEqual([
    'now',
    '42s ago',
    '5m ago',
    '1970-01-01',
  ])
  expect(['run_1', 'thread_team_15', 'run_552a0752a0752a0752a07', 'a-chat-with-a-long-name'].map(shortId)).toEqual([
    'run_1',
    'team_15',
    '752a07',
    'g-name',
  ])
})
