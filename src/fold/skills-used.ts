/** The skills that the models of a run have read, with their files. */
import type { Entry } from '../part/entry.ts'
import { ownValue } from '../part/own-value.ts'
import { parseInput } from './tool-loop.ts'

/** The tool that reads skills: see `engine/skills.ts`. */
export const skillTool = 'useSkill'

export interface SkillsUsed {
  apply(entry: Entry): void
  /** `pdf`, or `pdf (references/forms.md)`, in the order of their first use. Failed reads do not count. */
  list(): string[]
}

export function createSkillsUsed(): SkillsUsed {
  const asked = new Map<string, { name: string; file: string | undefined }>()
  const read = new Map<string, Set<string>>()
  return {
    apply(entry) {
      if (entry.type === 'tool-call' && entry.toolName === skillTool) {
        const input = parseInput(entry.input)
        if (typeof input !== 'object' || input === null) return
        const [name, file] = ['name', 'file'].map((key) => ownValue(input as Record<string, unknown>, key))
        if (typeof name === 'string')
          asked.set(entry.toolCallId, { name, file: typeof file === 'string' ? file : undefined })
      }
      if (entry.type !== 'tool-result' || entry.toolName !== skillTool || entry.isError === true) return
      const { name, file } = asked.get(entry.toolCallId) ?? {}
      if (name === undefined) return
      const files = read.get(name) ?? new Set()
      read.set(name, file === undefined ? files : files.add(file))
    },
    list: () => [...read].map(([name, files]) => (files.size === 0 ? name : `${name} (${[...files].join(', ')})`)),
  }
}
