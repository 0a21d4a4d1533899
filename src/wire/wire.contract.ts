/** Properties that every wire must satisfy, over random legal runs. Call it in the test file of each wire. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { arbitraryRun } from '../../test/arbitrary-run.ts'
import type { Entry } from '../part/entry.ts'
import type { Piece, Wire, WireContext } from './wire.ts'
import { often } from '../../test/support/thorough.ts'

export interface WireCase<Options, Out> {
  /** Everything that was sent. */
  body: Out
  state: 'complete' | 'broken'
  entries: Entry[]
  context: WireContext
  options: Options
}

export interface WireContract<Options, Out> {
  numRuns?: number
  /** Checks a whole body; throws if it is wrong. */
  judge?: (sent: WireCase<Options, Out>) => void
  /** Default: {@link arbitraryRun}. */
  runs?: fc.Arbitrary<Entry[]>
  /** Options of its clients. */
  options?: fc.Arbitrary<Options>
  /** The wire continues across suspends, so only the end of the run ends it. */
  follows?: boolean
}

/** With and without the role that some approvals need. */
const readers = fc.constantFrom<WireContext>({}, { roles: ['user'] }, { roles: ['operator'] })

export function wireContract<Options extends object, Out extends Piece>(
  wire: Wire<Options, Out>,
  contract: WireContract<Partial<Options>, Out> = {},
): void {
  const { numRuns = 150, judge, runs = arbitraryRun, options: asked = fc.constant({}), follows = false } = contract
  const property = (check: (entries: Entry[], context: WireContext, options: Partial<Options>) => void) =>
    fc.assert(
      fc.property(runs, fc.boolean(), readers, asked, (entries, resumed, reader, options) => {
        check(entries, { ...reader, ...(resumed && { resumedAt: lastResume(entries) }) }, options)
      }),
      { numRuns: often(numRuns, 3) },
    )

  test(`${wire.name}: ends exactly once, and says nothing after`, () => {
    property((entries, context, options) => {
      const encoder = wire.createEncoder(context, options)
      const pieces: Out[] = []
      for (const entry of entries) {
        const before = encoder.state
        const text = encoder.encode(entry)
        if (before !== 'open' && (text.length > 0 || encoder.state !== before))
          expect.unreachable(`after its end it says ${JSON.stringify(text)}`)
        pieces.push(text)
      }
      const { state } = encoder
      if (state === 'open') throw new Error('still open after run-end')
      expect(encoder.fail({ code: 'late', message: 'too late' })).toHaveLength(0)
      expect(encoder.state).toBe(state)
      judge?.({ body: joined(pieces), state, entries, context, options })
    })
  })

  test(`${wire.name}: prefix(k) + resume(k) = whole, for every k`, () => {
    property((entries, context, options) => {
      const whole = wire.createEncoder(context, options)
      const frames = entries.map((entry) => whole.encode(entry))
      const collected = wire.createEncoder(context, options)
      for (const entry of entries) collected.write(entry)
      expect(collected.take()).toEqual(joined(frames))
      for (let k = 0; k <= entries.length; k++) {
        const resumed = wire.createEncoder(context, options)
        for (const entry of entries.slice(0, k)) resumed.skip(entry)
        const rest = entries.slice(k).map((entry) => resumed.encode(entry))
        // For tens of thousands of positions `expect` would take most of the time.
        const [sent, due] = [joined(rest), joined(frames.slice(k))]
        if (sent !== due) expect(sent).toEqual(due)
        if (resumed.state !== whole.state) expect(resumed.state).toBe(whole.state)
      }
    })
  })

  test(`${wire.name}: a suspend ends the stream unless the run was resumed since`, () => {
    property((entries, context, options) => {
      const suspend = entries.find(({ type }) => type === 'suspend')
      if (!suspend || entries.some(({ type, seq }) => type === 'step-reset' && seq < suspend.seq)) return
      const ends = !follows && suspend.seq >= (context.resumedAt ?? 0)
      const encoder = wire.createEncoder(context, options)
      for (const entry of entries.slice(0, suspend.seq)) encoder.encode(entry)
      expect(encoder.state).toBe(ends ? 'complete' : 'open')
    })
  })

  test(`${wire.name}: a failure that the log does not hold ends it at any point`, () => {
    property((entries, context, options) => {
      for (let k = 0; k < entries.length; k += 3) {
        const encoder = wire.createEncoder(context, options)
        for (const entry of entries.slice(0, k)) encoder.encode(entry)
        const { state: before } = encoder
        const text = encoder.fail({ code: 'store-failed', message: 'The store broke.' })
        const { state } = encoder
        const said = typeof text === 'string' ? text : JSON.stringify(text)
        const isTold = before !== 'open' || state !== 'complete' || said.includes('The store broke.')
        const after = [encoder.fail({ code: 'again', message: 'again' })]
        for (const entry of entries.slice(k)) after.push(encoder.encode(entry))
        if (state === 'open' || !isTold) expect.unreachable(`it fails as ${state}, with ${said}`)
        if (after.some(({ length }) => length > 0)) expect.unreachable(`after its end it says ${JSON.stringify(after)}`)
      }
    })
  })
}

/** The further properties of a wire with `isStateless`. */
export function statelessContract<Options extends object, Out extends Piece>(
  wire: Wire<Options, Out>,
  options: fc.Arbitrary<Partial<Options>>,
): void {
  test(`${wire.name}: begins at any entry, and only the end of the run ends it`, () => {
    expect(wire.isStateless).toBe(true)
    const check = (entries: Entry[], asked: Partial<Options>) => {
      const whole = wire.createEncoder({}, asked)
      for (const entry of entries) {
        const begun = wire.createEncoder({}, asked)
        const [sent, due] = [begun.encode(entry), whole.encode(entry)]
        if (sent !== due) expect(sent).toEqual(due)
        expect(begun.state).toBe(entry.type === 'run-end' ? 'complete' : 'open')
      }
    }
    fc.assert(fc.property(arbitraryRun, options, check), { numRuns: often(150, 3) })
  })
}

/** Joins pieces: texts or lists. */
export function joined<Out extends Piece>(pieces: readonly Out[]): Out {
  const list: readonly Piece[] = pieces
  const isText = (each: Piece): each is string & Piece => typeof each === 'string'
  return (list.every(isText)
    ? list.join('')
    : list.flatMap((each) => [...(each as unknown as unknown[])])) as unknown as Out
}

/** The `resumedAt` at the time when a reader connects. */
export function lastResume(entries: readonly Entry[]): number {
  return entries.findLast(({ type }) => type === 'resume')?.seq ?? 0
}
