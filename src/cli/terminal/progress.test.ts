/** The line that says how far a long command has got. */
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { createProgress } from './progress.ts'

function terminal(isTTY: boolean) {
  const written: string[] = []
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      written.push(String(chunk))
      done()
    },
  })
  return { written, stderr: Object.assign(stream, { isTTY }) }
}

test('it counts, estimates the rest by the part that is done, and takes its line away', () => {
  const { written, stderr } = terminal(true)
  let now = 0
  const progress = createProgress(stderr, 'runs', () => now)
  progress.tell(12, 300_000)
  now = 10_000
  progress.tell(12, 300_000, 0.05)
  progress.tell(12, 300_000, 0.05)
  progress.tell(12, 300_000, 0.5)
  progress.tell(12, 300_000, 0.0005)
  progress.tell(300_000, 300_000)
  progress.clear()
  expect(written.map((each) => each.replace('\r\u001b[K', ''))).toEqual([
    '12 of 300,000 runs',
    '12 of 300,000 runs, about 3 min left',
    '12 of 300,000 runs, about 10 s left',
    '12 of 300,000 runs, about 6 h left',
    '300,000 of 300,000 runs',
    '',
  ])
})

test('elsewhere than on a terminal it says nothing', () => {
  const { written, stderr } = terminal(false)
  const progress = createProgress(stderr, 'runs')
  progress.tell(1, 2)
  progress.clear()
  expect(written).toEqual([])
})
