import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { createSandboxPool } from './pool.ts'
import type { CallOutcome, ScriptCall, ScriptState } from './sandbox.ts'
import { scriptOf, startTime } from './testing/run-script.ts'

const pool = createSandboxPool()
afterAll(() => pool.close())

/** What a log has of a script: its calls, and the answers in their order. */
interface Recorded {
  calls: string[]
  answers: { n: number; outcome: CallOutcome; now: number }[]
  end: string
}

const shown = ({ n, kind, name, input }: ScriptCall) => `${n} ${kind} ${name} ${input}`

/** Runs a script: first the recorded answers, then those that `choose` picks. */
async function record(
  code: string,
  seed: string,
  choose: () => number,
  earlier: Recorded['answers'] = [],
): Promise<Recorded> {
  const run = await pool.start(scriptOf(code, { seed, tools: ['a', 'b'] }))
  const recorded: Recorded = { calls: [], answers: [], end: '' }
  const open: ScriptCall[] = []
  const see = (state: ScriptState) => {
    recorded.calls.push(...state.calls.map(shown))
    open.push(...state.calls)
    if (state.state === 'waiting') return true
    const { calls: _, console, ...end } = state
    recorded.end = JSON.stringify([end, console])
    return false
  }
  let goesOn = see(await run.next())
  while (goesOn) {
    const known = earlier[recorded.answers.length]
    const index = known === undefined ? Math.floor(choose() * open.length) : open.findIndex(({ n }) => n === known.n)
    const [call] = open.splice(index, 1)
    if (call === undefined) throw new Error('The script diverged from its log.')
    const answer = known ?? {
      n: call.n,
      outcome:
        choose() < 0.2
          ? { error: { message: `failed ${call.n}`, code: 'x' } }
          : { value: JSON.stringify({ n: call.n, chance: choose() }) },
      now: startTime + recorded.answers.length * 1000 + Math.floor(choose() * 999),
    }
    recorded.answers.push(answer)
    goesOn = see(await run.settle(answer.n, answer.outcome, answer.now))
  }
  return recorded
}

/** Bodies of async functions, with races, chance, time, failures and loops. */
const { body } = fc.letrec<{ body: string; statement: string; value: string }>((tie) => ({
  body: fc
    .array(tie('statement'), { minLength: 1, maxLength: 3, depthIdentifier: 'script' })
    .map((all) => all.join('\n')),
  statement: fc.oneof(
    { depthIdentifier: 'script', maxDepth: 4 },
    tie('value').map((value) => `log.push(await ${value})`),
    tie('value').map((value) => `void ${value}.then((x) => log.push(x), (e) => log.push(e.message))`),
    fc.tuple(tie('body'), tie('body')).map(([a, b]) => `if (Math.random() < 0.5) {\n${a}\n} else {\n${b}\n}`),
    fc.tuple(fc.integer({ min: 1, max: 3 }), tie('body')).map(([n, a]) => `for (let i = 0; i < ${n}; i++) {\n${a}\n}`),
    tie('body').map((a) => `try {\n${a}\n} catch (e) { log.push(e.message, e.code) } finally { log.push(Date.now()) }`),
    fc.constant('console.log(log.length, Math.random(), Date.now())'),
    fc.constant('await null'),
  ),
  value: fc.oneof(
    { depthIdentifier: 'script', maxDepth: 4 },
    fc
      .constantFrom('a', 'b')
      .map((name) => `tools.${name}({ size: log.length, chance: Math.random(), at: Date.now() })`),
    fc
      .tuple(
        fc.constantFrom('all', 'race', 'any', 'allSettled'),
        fc.array(tie('value'), { minLength: 1, maxLength: 4 }),
      )
      .map(([how, all]) => `Promise.${how}([${all.join(', ')}])`),
    tie('body').map((a) => `(async () => {\n${a}\n})()`),
    fc.constant('ask("ok?")'),
  ),
}))

/** Numbers from 0 to 1 by a seed. */
function chanceBy(seed: number): () => number {
  let state = seed | 1
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32
  }
}

/** Seventeen calls. */
const races = `
  const one = async (id) => { await null; return tools.a({ id, chance: Math.random() }) }
  for (let i = 0; i < 4; i++) log.push(await Promise.race([one(i), tools.b(i), one(i).catch(() => 'failed')]).catch((e) => e.message))
  log.push(await Promise.allSettled([1, 2, 3, 4, 5].map((i) => tools.b({ i, at: Date.now() }))))`

describe('a script that runs again from its log', () => {
  test('makes the same calls in the same order, wherever it was cut', async () => {
    let most = 0
    await fc.assert(
      fc.asyncProperty(
        body,
        fc.integer(),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 3, maxLength: 3 }),
        async (script, seed, cuts) => {
          const code = `const log = []\n${script}\nreturn log`
          const whole = await record(code, `${seed}`, chanceBy(seed))
          most = Math.max(most, whole.answers.length)
          for (const cut of cuts) {
            const left = whole.answers.slice(0, Math.round(cut * whole.answers.length))
            expect(await record(code, `${seed}`, chanceBy(0), whole.answers)).toEqual(whole)
            // With other answers behind the cut, all up to the cut is the same.
            const other = await record(code, `${seed}`, chanceBy(seed + 1), left)
            const known = callsUpTo(left, whole)
            expect(other.calls.slice(0, known.length)).toEqual(known)
            expect(other.answers.slice(0, left.length)).toEqual(left)
          }
        },
      ),
      { numRuns: 30, examples: [[races, 7, [0, 0.3, 0.9]]] },
    )
    expect(most).toBeGreaterThan(11)
  })

  /** The calls that were answered, at least, had been made. */
  function callsUpTo(left: Recorded['answers'], whole: Recorded): string[] {
    const last = Math.max(0, ...left.map(({ n }) => n))
    return whole.calls.slice(0, last)
  }

  test('another seed gives other numbers, which is seen in its calls', async () => {
    const code = 'for (let i = 0; i < 3; i++) await tools.a(Math.random())\nreturn 1'
    const [one, again, other] = await Promise.all(['1', '1', '2'].map((seed) => record(code, seed, chanceBy(1))))
    expect(again).toEqual(one)
    expect(other!.calls).not.toEqual(one!.calls)
  })
})
