/**
 * What many connections have sent, a little of it in each turn of the event loop: nobody keeps the others waiting, however much they
 * send at once. Each line keeps its order, and the lines take turns.
 */
export interface Turns {
  line(): Line
}

/** The tasks of one connection. */
export interface Line {
  /** Runs the task at once if this turn has room and nothing waits before it, else in a later turn. `cost`: its share of a turn's room. */
  push(run: () => void, cost: number): void
  /** The cost of what waits. */
  readonly waiting: number
}

export interface TurnsOptions {
  /** The room of a turn. What costs more has a turn for itself. */
  room: number
  /** Calls back in the next turn of the event loop. */
  later?: (next: () => void) => void
}

interface Task {
  run(): void
  cost: number
}

interface Waiting {
  tasks: Task[]
  /** Those before it are done. */
  next: number
  cost: number
}

export function createTurns({ room, later = (next) => void setImmediate(next) }: TurnsOptions): Turns {
  /** The first one is next. */
  const busy = new Set<Waiting>()
  let left = room
  let isSet = false

  function arm(): void {
    if (isSet) return
    isSet = true
    later(turn)
  }

  function turn(): void {
    isSet = false
    left = room
    // First, because a task may throw.
    if (busy.size > 0) arm()
    while (left > 0) {
      const [line] = busy
      if (line === undefined) return
      busy.delete(line)
      const { run, cost } = line.tasks[line.next++]!
      line.cost -= cost
      left -= cost
      if (line.next < line.tasks.length) busy.add(line)
      else Object.assign(line, { tasks: [], next: 0 })
      run()
    }
  }

  return {
    line() {
      const line: Waiting = { tasks: [], next: 0, cost: 0 }
      return {
        push(run, cost) {
          arm()
          if (left > 0 && line.tasks.length === 0) {
            left -= cost
            return run()
          }
          line.tasks.push({ run, cost })
          line.cost += cost
          busy.add(line)
        },
        get waiting() {
          return line.cost
        },
      }
    },
  }
}
