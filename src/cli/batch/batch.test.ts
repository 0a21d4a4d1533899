import { describe, expect, test } from 'vitest'
import { createContext } from '../../../test/support/command-context.ts'
import type { Output } from '../context.ts'
import { createBatchProgress } from './batch.ts'
import type { BatchResult } from './files.ts'

const result = (line: number, more: Partial<BatchResult> = {}): BatchResult => ({
  line,
  hash: 'h',
  run: `run_${line}`,
  outcome: 'completed',
  text: '',
  duration: 1,
  usage: { totalTokens: 10, source: 'reported' },
  cost: 0.01,
  ...more,
})

function written(isTTY: boolean, results: BatchResult[], total: number): string {
  let out = ''
  const stream = { isTTY, columns: 60, write: (text: string) => ((out += text), true) } as unknown as Output
  const progress = createBatchProgress(createContext({ stderr: stream }), total, 0)
  for (const each of results) progress.add(each)
  progress.end()
  return out.replaceAll(/\d+\.\d\ds/gu, '1s')
}

const failed = result(2, { outcome: 'failed', error: { code: 'x', message: 'It broke.' }, cost: 0.02 })

describe('createBatchProgress', () => {
  test('on a terminal a bar is drawn over itself, and a failure gets a line of its own', () => {
    expect(written(true, [result(1), failed], 4).split('\r\u001b[K')).toEqual([
      '██████░░░░░░░░░░░░░░░░░░ 1/4, 10 tokens, $0.0100, ETA 1s',
      'line 2: failed: It broke. (run_2)\n████████████░░░░░░░░░░░░ 2/4, 1 failed, 20 tokens, $0.0300…',
      '1 completed, 1 failed, 20 tokens, $0.0300, 2 not run, 1s\n',
    ])
  })

  test('elsewhere there is a line for each tenth', () => {
    const lines = written(
      false,
      Array.from({ length: 100 }, (_, i) => result(i + 1)),
      100,
    )
      .trim()
      .split('\n')
    expect(lines).toHaveLength(10)
    expect(lines[0]).toBe('10/100, 100 tokens, $0.1000, ETA 1s')
    expect(lines.at(-1)).toBe('100 completed, 1000 tokens, $1.0000, 1s')
  })

  test('a cost that is not known of every run is not told', () => {
    const { cost: _, ...unknown } = result(1)
    expect(written(false, [unknown, result(2)], 2)).toMatch(/^1\/2, 10 tokens, ETA 1s\n2 completed, 20 tokens, 1s\n$/u)
  })
})
