import { expect, test } from 'vitest'
import { createStoreClock } from './store-clock.ts'

const start = 1_800_000_000_000

/** This machine: `wall` is its clock, and `steady` the ms that have passed. */
function machine(ahead = 0) {
  const at = { wall: start + ahead, steady: 500 }
  const told: string[] = []
  const clock = createStoreClock((line) => told.push(line), { wall: () => at.wall, steady: () => at.steady })
  const pass = (ms: number) => {
    at.wall += ms
    at.steady += ms
  }
  /** Redis is asked, and says its time after so many ms of a way that takes `way` ms. */
  const ask = (way: number, until: number, time: (true_: number) => number = (now) => now) => {
    const sent = at.steady
    pass(until)
    const said = time(at.wall - ahead)
    pass(way - until)
    clock.heard(sent, said)
  }
  return { at, told, clock, pass, ask }
}

test.each([0, 3_600_000, -3_600_000])('a clock that is %i ms ahead says the time of Redis', (ahead) => {
  const { clock, ask, pass, told } = machine(ahead)
  expect(clock.now()).toBe(start + ahead)
  ask(10, 5)
  expect(clock.now()).toBe(start + 10)
  pass(1000)
  expect(clock.now()).toBe(start + 1010)
  expect(Math.abs(clock.ahead() - ahead)).toBeLessThanOrEqual(10)
  expect(told).toEqual(
    ahead === 0 ? [] : [expect.stringContaining(`is 3600.0 s ${ahead > 0 ? 'ahead of' : 'behind'} that of Redis`)],
  )
})

test('setting the clock of the machine changes nothing but what is said of it', () => {
  const { at, clock, ask, told } = machine()
  ask(2, 1)
  at.wall += 60_000
  expect(clock.now()).toBe(start + 2)
  expect(told).toEqual([])
})

test('slow and lopsided answers do not make it tremble; a fast one corrects it; a jump of Redis is followed', () => {
  const { clock, ask, at } = machine()
  // All of the four seconds were the way back, which cannot be told from any other way.
  ask(4000, 0)
  const off = () => clock.now() - at.wall
  expect(off()).toBe(-2000)
  ask(4000, 3000)
  expect(off()).toBe(-1000)
  ask(6, 3)
  expect(Math.abs(off())).toBeLessThanOrEqual(3)
  const now = off()
  for (const until of [0, 90, 40, 95]) ask(100, until)
  expect(off()).toBe(now)
  ask(2, 1, (time) => time - 500_000)
  expect(Math.abs(off() + 500_000)).toBeLessThanOrEqual(1)
})
