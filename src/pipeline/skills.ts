/**
 * `skills` of an agent file: folders with a `SKILL.md` in the open format. Their names and descriptions are read when the agent is loaded, and stand in
 * the text that every run records. Their contents are read when the model asks for them.
 */
import { child } from './check.ts'
import { createFaultCollector, type FaultCollector } from './fault.ts'
import { pathFault, quote, refuseSecrets, type InlineOptions } from './inlined.ts'
import type { Fault } from './pipeline.ts'
import { textOf } from './reader.ts'
import { longestDescription, nameRule, skillName, type SkillUse } from './skill-list.ts'
import { parseTree, type Node } from './tree.ts'

/** A list whose folders have been read. */
export interface SkillEdit {
  start: number
  end: number
  /** YAML for the whole list. */
  text: string
}

/** Replaces the folders in the tree with what their files say. Returns the edit of the text, and adds warnings about the files. */
export function inlineSkills(
  root: Node,
  options: InlineOptions,
  text: string,
  warnings: Fault[],
): SkillEdit | undefined {
  const { faults } = options
  const node = child(root, 'skills')
  if (root.kind !== 'map' || node?.kind !== 'list') return undefined
  if (node.items.every(({ kind }) => kind === 'map')) {
    checkUnique(node.items, faults)
    return undefined
  }
  const skills: SkillUse[] = []
  const places = new Map<string, number>()
  for (const item of node.items) {
    const read = item.kind === 'map' ? [asRecorded(item)] : readFolders(item, options, warnings)
    for (const skill of read) {
      if (skill === undefined || skills.some(({ folder }) => folder === skill.folder)) continue
      const other = skills.find((each) => each.name === skill.name)
      if (other !== undefined) {
        const line = faults.lineOf(places.get(other.folder)!)
        faults.add(
          item.at,
          `the skill "${skill.name}" is in ${skill.folder} and, by line ${line}, in ${other.folder}; rename one of them`,
        )
        continue
      }
      skills.push(skill)
      places.set(skill.folder, item.at)
    }
  }
  const { at } = node
  const scalar = (value: string): Node => ({
    kind: 'scalar',
    text: value,
    plain: false,
    at,
    end: at,
    size: 1,
    height: 1,
  })
  const items = skills.map((skill): Node => {
    const entries = new Map(
      Object.entries(skill).map(([key, value]: [string, string]) => [key, { at, value: scalar(value) }]),
    )
    return { kind: 'map', entries, at, size: 4, height: 2 }
  })
  root.entries.set('skills', {
    at: root.entries.get('skills')!.at,
    value: { kind: 'list', items, at, size: 1 + 4 * items.length, height: 3 },
  })
  const written = skills.map(
    (skill) =>
      `{${Object.entries(skill)
        .map(([key, value]: [string, string]) => `${key}: ${quote(value)}`)
        .join(', ')}}`,
  )
  // One column further: a list may stand as far left as its key, a list in brackets may not.
  return { start: at, end: endOf(text, node), text: ` [${written.join(', ')}]` }
}

function endOf(text: string, { at, items }: Extract<Node, { kind: 'list' }>): number {
  const end = items.reduce((last, item) => Math.max(last, item.kind === 'scalar' ? item.end : last), at)
  if (text[at] !== '[') return end
  const close = /(?:[\s,]|#[^\n\r]*)*\]/uy
  close.lastIndex = end
  return close.test(text) ? close.lastIndex : end
}

/** A faulty one is left to the schema. */
function asRecorded(item: Node): SkillUse | undefined {
  const [called, description, folder] = ['name', 'description', 'folder'].map((key) => textOf(child(item, key)))
  if (called === undefined || description === undefined || folder === undefined) return undefined
  return { name: called, description, folder }
}

function checkUnique(items: readonly Node[], faults: FaultCollector): void {
  const seen = new Set<string>()
  for (const item of items) {
    const called = textOf(child(item, 'name')) ?? ''
    if (seen.has(called)) faults.add(item.at, `duplicate skill "${called}"; remove one of the two`)
    seen.add(called)
  }
}

function readFolders(item: Node, options: InlineOptions, warnings: Fault[]): SkillUse[] {
  const { faults, readText } = options
  const pattern = textOf(item)?.replace(/\/+$/u, '')
  if (pattern === undefined || pattern === '') {
    faults.add(item.at, 'must be a folder such as skills/pdf, or skills/* for all folders in skills')
    return []
  }
  const isAll = pattern === '*' || pattern.endsWith('/*')
  const base = isAll ? pattern.slice(0, -1).replace(/\/$/u, '') : pattern
  const wrong = base.includes('*')
    ? 'may have "*" only as its last part: skills/*'
    : base === ''
      ? undefined
      : pathFault(base)
  if (wrong !== undefined || base === '.') {
    faults.add(item.at, `the folder ${pattern} ${wrong ?? 'must be one below that of this file'}`)
    return []
  }
  if (readText?.folders === undefined) {
    faults.add(item.at, `cannot read the folder ${pattern} here: only agents folders and loadYaml read skills`)
    return []
  }
  const prefix = base === '' ? '' : `${base}/`
  if (!isAll) return readSkill(base, item, options, warnings) ?? []
  let names: string[]
  try {
    names = readText.folders(base === '' ? '.' : base)
  } catch (error) {
    faults.add(item.at, `the folder ${base} ${error instanceof Error ? error.message : 'cannot be read'}`)
    return []
  }
  const skills = names.map((each) => readSkill(`${prefix}${each}`, item, options, warnings, true))
  if (skills.every((each) => each === undefined))
    faults.add(item.at, `there is no folder with a SKILL.md in ${base || 'this folder'}`)
  return skills.flatMap((each) => each ?? [])
}

/** `mayLack`: a folder without the file is no skill. Undefined for such a folder; empty for a faulty one. */
function readSkill(
  folder: string,
  { at }: Node,
  { faults, readText, secrets = [] }: InlineOptions,
  warnings: Fault[],
  mayLack = false,
): SkillUse[] | undefined {
  const path = `${folder}/SKILL.md`
  let content: string
  try {
    content = readText!(path)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'cannot be read'
    if (mayLack && why === 'is missing') return undefined
    faults.add(at, `the file ${path} ${why}`)
    return []
  }
  const inside = createFaultCollector(content)
  refuseSecrets(content, secrets, inside)
  const notes = createFaultCollector(content)
  const skill = inside.list().length > 0 ? undefined : checkSkill(content, folder, inside, notes)
  for (const { line, column, message } of inside.list()) faults.add(at, `${path}:${line}:${column} ${message}`)
  for (const { line, column, message } of notes.list()) {
    warnings.push({ line: faults.lineOf(at), column: 1, message: `${path}:${line}:${column} ${message}` })
  }
  return skill === undefined ? [] : [skill]
}

/** The fields between the lines `---` at the beginning, at the same offsets as in the file, and the offset behind them. */
function frontMatter(content: string): { fields: string; end: number } | undefined {
  const [first] = /^---[ \t]*\r?\n/u.exec(content) ?? []
  if (first === undefined) return undefined
  const last = /^---[ \t]*\r?$/gmu
  last.lastIndex = first.length
  const match = last.exec(content)
  if (match === null) return undefined
  return { fields: `${' '.repeat(first.length - 1)}\n${content.slice(first.length, match.index)}`, end: last.lastIndex }
}

/** The body of a `SKILL.md`. */
export function skillBody(content: string): string {
  return content.slice(frontMatter(content)?.end ?? 0).trim()
}

/** Fields of the open format that say nothing here. */
const otherFields = ['license', 'compatibility', 'metadata']

function checkSkill(
  content: string,
  folder: string,
  faults: FaultCollector,
  notes: FaultCollector,
): SkillUse | undefined {
  const front = frontMatter(content)
  if (front === undefined) {
    faults.add(0, 'must begin with front matter: a line ---, "name" and "description", a line ---')
    return undefined
  }
  const fields = parseTree(front.fields, faults)
  if (faults.list().length > 0) return undefined
  if (fields?.kind !== 'map') {
    faults.add(0, 'has no fields between its lines ---; write "name" and "description"')
    return undefined
  }
  for (const [key, { at }] of fields.entries) {
    if (key === 'name' || key === 'description' || otherFields.includes(key)) continue
    if (key === 'allowed-tools')
      notes.add(at, '"allowed-tools" is ignored: a skill gives an agent no tools and no rights')
    else notes.add(at, (hint) => `unknown field "${key}"${hint(key, ['name', 'description', ...otherFields])}`)
  }
  const [called, description] = ['name', 'description'].map((key) => {
    const field = child(fields, key)
    const value = textOf(field)?.trim()
    if (value === undefined || value === '')
      faults.add(field?.at ?? fields.at, `"${key}" ${field === undefined ? 'is missing' : 'must be a text'}`)
    return value
  })
  const own = folder.split('/').at(-1)!
  if (called) {
    const { at } = fields.entries.get('name')!.value
    if (called.length > 64 || !skillName.test(called))
      faults.add(at, `"name" ${nameRule}, not "${called.slice(0, 80)}"`)
    else if (called !== own) faults.add(at, `"name" is "${called}", but the folder is "${own}"; they must be the same`)
  }
  if (description !== undefined && description.length > longestDescription) {
    const { at } = fields.entries.get('description')!.value
    faults.add(at, `"description" has ${description.length} characters; at most ${longestDescription} are allowed`)
  }
  if (faults.list().length > 0 || !called || !description) return undefined
  return { name: called, description: description.replaceAll(/\s+/gu, ' '), folder }
}
