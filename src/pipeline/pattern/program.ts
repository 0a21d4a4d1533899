/** Compiles a pattern's tree to instructions of an automaton. Execution starts at 0; each instruction leads to the next by default. */
import { PatternError, type Assertion, type PatternNode } from './parse.ts'

export type Instruction =
  | { type: 'char'; accepts(char: string): boolean }
  | { type: 'assert'; kind: Assertion }
  /** Continues at each of these. */
  | { type: 'split'; to: number[] }
  | { type: 'match' }

/** Counted repetitions are expanded: a pattern with more instructions is rejected. */
const most = 2000

/** Throws {@link PatternError}. */
export function toProgram(root: PatternNode): Instruction[] {
  const program: Instruction[] = []
  let copies = 0

  function add<T extends Instruction>(instruction: T): T {
    if (program.length >= most) throw new PatternError('has too many repetitions')
    program.push(instruction)
    return instruction
  }
  const split = () => add({ type: 'split', to: [] as number[] })

  function write(node: PatternNode): void {
    switch (node.type) {
      case 'char':
      case 'assert':
        add(node)
        return
      case 'sequence':
        node.items.forEach(write)
        return
      case 'choice': {
        const start = split()
        const ends = node.items.map((item) => {
          start.to.push(program.length)
          write(item)
          return split()
        })
        for (const end of ends) end.to.push(program.length)
        return
      }
      case 'repeat':
        repeat(node)
    }
  }

  function repeat({ item, min, max }: Extract<PatternNode, { type: 'repeat' }>): void {
    const copy = () => {
      // A repetition of nothing adds no instruction, so copies are counted too.
      if (++copies > 10 * most) throw new PatternError('has too many repetitions')
      write(item)
    }
    for (let i = 0; i < min; i++) copy()
    if (max === Infinity) {
      const at = program.length
      const loop = split()
      loop.to.push(program.length)
      copy()
      split().to.push(at)
      loop.to.push(program.length)
      return
    }
    const exits = []
    for (let i = min; i < max; i++) {
      const exit = split()
      exit.to.push(program.length)
      exits.push(exit)
      copy()
    }
    for (const exit of exits) exit.to.push(program.length)
  }

  write(root)
  add({ type: 'match' })
  return program
}
