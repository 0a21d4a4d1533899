/**
 * Skills of an agent: the prompt names them, and the model reads one with `useSkill` when it needs it. What it has read is the result of a call, so a
 * folder that changes later changes nothing in the run. A skill gives the model text, and no tools.
 */
import { MillraceError } from '../part/error.ts'
import { listNames, didYouMean } from '../pipeline/nearest.ts'
import type { ToolLoopConfig } from '../pipeline/pipeline.ts'
import { skillTool, type SkillUse } from '../pipeline/skill-list.ts'
import type { ToolImplementation } from '../tools/tool.ts'
import type { Scope } from './scope.ts'
import type { OfferedTool } from './tool-call.ts'

/** The folders of skills. */
export interface SkillFiles {
  /**
   * Returns a piece of the body of a skill, or of one of its files, from a character on. Throws a `MillraceError` for the model: links out of the
   * folder, `..`, binary files, files that are missing.
   */
  read(skill: SkillUse, file: string | undefined, from?: number): SkillPiece
}

export interface SkillPiece {
  text: string
  /** Of the whole text. */
  length: number
  /** Where the next piece begins; absent after the last one. */
  next?: number
  /** With the first piece of the body: the other files of the skill. */
  files: string[]
}

/** The system message with the names and descriptions of the skills behind it. */
export function withSkills<C extends Pick<ToolLoopConfig, 'system' | 'skills'>>(config: C): C {
  const { skills = [], system } = config
  if (skills.length === 0) return config
  const lines = skills.map(({ name, description }) => `- ${name}: ${description}`)
  const about = `# Skills\n\nA skill has instructions for a kind of task. If one fits the task, read it with ${skillTool} before you begin.\n\n${lines.join('\n')}`
  return { ...config, system: system === undefined || system === '' ? about : `${system}\n\n${about}` }
}

const inputSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'Name of the skill.' },
    file: { type: 'string', description: 'A file of the skill, relative to its folder. Without it: its instructions.' },
    from: {
      type: 'integer',
      minimum: 0,
      description: 'The character at which to begin, for the next piece of a long text.',
    },
  },
  required: ['name'],
  additionalProperties: false,
}

interface SkillInput {
  name: string
  file?: string
  from?: number
}

/** Adds the tool that reads the skills. A tool of the request with its name is replaced. Returns whether one was. */
export function offerSkills(
  { registry }: Pick<Scope, 'registry'>,
  tools: Map<string, OfferedTool>,
  skills: readonly SkillUse[] = [],
): boolean {
  if (skills.length === 0) return false
  const description = 'Reads the instructions of a skill, or one of its files. Scripts are text: they are not run.'
  const implementation: ToolImplementation = {
    description,
    parameters: inputSchema,
    idempotent: true,
    execute: ({ name, file, from }: SkillInput) => {
      const names = skills.map((skill) => skill.name)
      const skill = skills.find((each) => each.name === name)
      if (skill === undefined) {
        const cure = `${didYouMean(name, names)}. The skills: ${listNames(names)}.`
        throw new MillraceError('unknown-skill', `There is no skill "${name}"${cure}`)
      }
      if (registry.skills === undefined) {
        throw new MillraceError('unknown-skill', 'Skills cannot be read here: this program has no folder of agents.')
      }
      return toText(registry.skills.read(skill, file === 'SKILL.md' ? undefined : file, from))
    },
  }
  const isTaken = tools.has(skillTool)
  tools.set(skillTool, { spec: { name: skillTool, description, inputSchema }, implementation })
  return isTaken
}

function toText({ text, length, next, files }: SkillPiece): string {
  const notes = [
    ...(next === undefined ? [] : [`This is a piece of ${length} characters. The next one: from: ${next}.`]),
    ...(files.length === 0 ? [] : [`Files of this skill: ${files.join(', ')}`]),
  ]
  return notes.length === 0 ? text : `${text}\n\n[${notes.join('\n')}]`
}
