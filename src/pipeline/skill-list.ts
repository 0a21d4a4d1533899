/** The schema of `skills` in an agent file, and the rules of the open format. */
import { z } from 'zod'
import { list, map, name } from './scalars.ts'

/** A folder with a `SKILL.md`. */
export interface SkillUse {
  name: string
  description: string
  /** Relative to the agent's file. */
  folder: string
}

/** The tool with which a model reads a skill. */
export const skillTool = 'useSkill'

/** Characters. */
export const longestDescription = 1024
export const skillName = /^[a-z0-9]+(?:-[a-z0-9]+)*$/u
export const nameRule = 'must have 1 to 64 small letters, digits and single hyphens between them'

/** A folder below that of the agent's file. */
export function isSkillFolder(path: string): boolean {
  return path.split('/').every((part) => part !== '' && part !== '.' && part !== '..') && !/^[A-Za-z]:|\\/u.test(path)
}

/** As it stands in the text that a run records. */
const skill = map({
  name: name.max(64, nameRule).regex(skillName, nameRule).describe('Name of the skill.'),
  description: name
    .max(longestDescription, `is longer than ${longestDescription} characters`)
    .describe('What it is for, and when to use it.'),
  folder: name
    .refine(isSkillFolder, 'must be a folder below that of this file')
    .describe('Its folder, relative to this file.'),
})
export const skillList = list(
  z.union([name, skill], 'must be a folder such as skills/pdf, or skills/* for all folders in skills'),
)
