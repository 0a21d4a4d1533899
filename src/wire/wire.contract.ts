/** Properties that every wire must satisfy, over random legal runs. Call it in the test file of each wire. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import type { Entry } from '../part/entry.ts'
import type { EncoderOptions, Wire } from './wire.ts'

export interface WireCase {
  /** Everything that was sent. */
  body: string
  state: 'complete' | 'broken'
  entries: Entry[]
  options: EncoderOptions
}

export interface WireContract {
  numRuns?: number
  /** Checks a whole body; throws if it is wrong. */
  judge?: (sent: WireCase) => void
  /** Default: {@link arbitraryRun}. */
  runs?: fc.Arbitrary<Entry[]>
  /** Further options of its clients. */
  options?: fc.Arbitrary<EncoderOptions>
  /** The wire continues across suspends, so only the end of the run ends it. */
  follows?: boolean
}

export function wireContract(wire: Wire, contract: WireContract = {}): void {
  const { numRuns = 150, judge, runs = arbitraryRun, options: more = fc.constant({}), follows = false } = contract
  const property = (check: (entries: Entry[], options: EncoderOptions) => void) =>
    fc.assert(
      fc.property(runs, fc.boolean(), fc.boolean(), more, (entries, resumed, ui7, asked) => {
        check(entries, { ui7, ...asked, ...(resumed && { resumedAt: lastResume(entries) }) })
      }),
      { numRuns },
    )

  test(`${wire.name}: ends exactly once, and says nothing after`, () => {
    property((entries, options) => {
      const encoder = wire.createEncoder(options)
      let body = ''
      for (const entry of entries) {
        const before = encoder.state
        const text = encoder.encode(entry)
        if (before !== 'open') {
          expect(text).toBe('')
          expect(encoder.state).toBe(before)
        }
        body += text
      }
      const { state } = encoder
      if (state === 'open') throw new Error('still open after run-end')
      expect(encoder.fail({ code: 'late', message: 'too late' })).toBe('')
      expect(encoder.state).toBe(state)
      judge?.({ body, state, entries, options })
    })
  })

  test(`${wire.name}: prefix(k) + resume(k) = whole, for every k`, () => {
    property((entries, options) => {
      const whole = wire.createEncoder(options)
      const frames = entries.map((entry) => whole.encode(entry))
      for (let k = 0; k <= entries.length; k++) {
        const resumed = wire.createEncoder(options)
        for (const entry of entries.slice(0, k)) resumed.skip(entry)
        const rest = entries.slice(k).map((entry) => resumed.encode(entry))
        expect(rest.join('')).toBe(frames.slice(k).join(''))
        expect(resumed.state).toBe(whole.state)
      }
    })
  })

  test(`${wire.name}: a suspend ends the stream unless the run was resumed since`, () => {
    property((entries, options) => {
      const suspend = entries.find(({ type }) => type === 'suspend')
      if (!suspend || entries.some(({ type, seq }) => type === 'step-reset' && seq < suspend.seq)) return
      const ends = !follows && suspend.seq >= (options.resumedAt ?? 0)
      const encoder = wire.createEncoder(options)
      for (const entry of entries.slice(0, suspend.seq)) encoder.encode(entry)
      expect(encoder.state).toBe(ends ? 'complete' : 'open')
    })
  })

  test(`${wire.name}: a failure that the log does not hold ends it at any point`, () => {
    property((entries, options) => {
      for (let k = 0; k < entries.length; k += 3) {
        const encoder = wire.createEncoder(options)
        for (const entry of entries.slice(0, k)) encoder.encode(entry)
        const { state: before } = encoder
        const text = encoder.fail({ code: 'store-failed', message: 'The store broke.' })
        const { state } = encoder
        expect(state).not.toBe('open')
        if (before === 'open' && state === 'complete') expect(text).toContain('The store broke.')
        expect(encoder.fail({ code: 'again', message: 'again' })).toBe('')
        for (const entry of entries.slice(k)) expect(encoder.encode(entry)).toBe('')
      }
    })
  })
}

/** The `resumedAt` that a server knows when a reader connects. */
export function lastResume(entries: readonly Entry[]): number {
  return entries.findLast(({ type }) => type === 'resume')?.seq ?? 0
}
