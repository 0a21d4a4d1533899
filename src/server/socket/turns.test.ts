import { describe, expect, test } from 'vitest'
import { createTurns } from './sliced-input.ts'

/** Turns of the event loop that the test takes. */
function create(room: number) {
  const due: (() => void)[] = []
  const turns = createTurns({ room, later: (next) => void due.push(next) })
  const done: string[] = []
  return {
    ...turns,
    done,
    task: (name: string) => () => void done.push(name),
    /** What is done in the next turn. Undefined if none was asked for. */
    turn() {
      const next = due.shift()
      if (next === undefined) return undefined
      done.length = 0
      next()
      return [...done]
    },
  }
}

describe('Socket.IO turns', () => {
  test('a turn takes what it has room for, at once or later; each line keeps its order, and the lines take turns', () => {
    const { line, task, done, turn } = create(3)
    const [a, b] = [line(), line()]
    for (let i = 1; i <= 8; i++) a.push(task(`a${i}`), 1)
    expect(done).toEqual(['a1', 'a2', 'a3'])
    for (let i = 1; i <= 2; i++) b.push(task(`b${i}`), 1)
    expect([a.waiting, b.waiting]).toEqual([5, 2])
    expect(turn()).toEqual(['a4', 'b1', 'a5'])
    expect(turn()).toEqual(['b2', 'a6', 'a7'])
    expect(turn()).toEqual(['a8'])
    // The rest of the room, and then nothing is left to wake up for.
    b.push(task('b3'), 1)
    expect(done).toEqual(['a8', 'b3'])
    expect([turn(), turn()]).toEqual([[], undefined])
    expect(a.waiting).toBe(0)
  })

  test('a task that costs more than a turn has is alone in the rest of it; one that throws stops nothing', () => {
    const { line, task, turn } = create(3)
    const one = line()
    one.push(task('small'), 1)
    one.push(task('large'), 50)
    one.push(task('next'), 3)
    one.push(() => {
      throw new Error('broken')
    }, 1)
    one.push(task('last'), 1)
    expect(turn()).toEqual(['next'])
    expect(turn).toThrow('broken')
    expect(turn()).toEqual(['last'])
  })
})
