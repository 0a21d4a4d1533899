import { describe, expect, onTestFinished, test } from 'vitest'
import type { FailEffect } from '../runtime/runtime.ts'
import { createErrorGuard, type Report } from './error-guard.ts'

/** `raise`: what Node does with an error that nobody catches. The test runner would take a real one for its own. */
function guarded(effect: FailEffect = 'failed') {
  const reports: Report[] = []
  const failed: [run: string, message: string][] = []
  let exits = 0
  const guard = createErrorGuard({ report: (report) => void reports.push(report), exit: () => void exits++ })
  guard.bind({
    fail: (run, { message }) => (failed.push([run, message]), effect),
    redact: (value) => JSON.parse(JSON.stringify(value).replaceAll('s3cret', '[secret]')) as typeof value,
  })
  const before = process.listeners('uncaughtException')
  onTestFinished(guard.install(process))
  const [raise] = process.listeners('uncaughtException').filter((each) => !before.includes(each)) as [
    (e: unknown) => void,
  ]
  return { guard, raise, reports, failed, exits: () => exits }
}

describe('createErrorGuard', () => {
  test('an error of a run fails that run, and is reported as an error, without secrets', () => {
    const { guard, raise, reports, failed, exits } = guarded()
    const step = { path: 'main/a', id: 'a', type: 'custom' }
    guard.attribute({ run: 'run_1', step }, () => raise(new Error('too late, s3cret')))
    expect(failed).toEqual([['run_1', 'Step "a" (custom) failed.']])
    expect(reports).toEqual([
      {
        level: 'error',
        event: 'uncaught-error',
        message: expect.stringContaining('[secret]'),
        run: 'run_1',
        step: 'main/a',
      },
    ])
    expect([guard.unattributed, exits()]).toEqual([0, 0])
  })

  test('one of no run is counted; one that leaves the process unreliable ends it', () => {
    const { guard, raise, reports, failed, exits } = guarded()
    raise(new Error('somewhere'))
    raise(Object.assign(new Error('full'), { code: 'ENOMEM' }))
    expect([failed, guard.unattributed, exits()]).toEqual([[], 2, 1])
    expect(reports.map(({ level }) => level)).toEqual(['error', 'error'])
  })

  test('a timer that throws a thousand times is reported twenty times, and what ends the process always', () => {
    const { raise, reports } = guarded('inactive')
    for (let i = 0; i < 1000; i++) raise(new Error('again'))
    expect(reports).toHaveLength(20)
    raise(Object.assign(new Error('full'), { code: 'ENOMEM' }))
    expect(reports).toHaveLength(21)
  })

  test('an error that throws whenever it is looked at is reported all the same', () => {
    const { raise, reports } = guarded()
    raise(
      new Proxy(new Error(), {
        get: () => {
          throw new Error('no')
        },
        getPrototypeOf: () => {
          throw new Error('no')
        },
      }),
    )
    expect(reports).toMatchObject([{ level: 'error', event: 'uncaught-error' }])
  })
})
