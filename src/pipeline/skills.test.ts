/** `skills` in an agent file: the folders, the open format, and the text that a run records. */
import { describe, expect, test } from 'vitest'
import { faultsOf } from './fault.ts'
import type { ReadText } from './inlined.ts'
import { parsePipeline } from './parse.ts'
import type { Pipeline } from './pipeline.ts'
import { skillBody } from './skills.ts'

const skill = (name: string, description = `About ${name}`, more = '') =>
  `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n`

/** Files by path. A folder is one that has a file. */
function readerOf(files: Record<string, string>): ReadText {
  const read = (path: string) => {
    const found = files[path]
    if (found === undefined) throw new Error('is missing')
    return found
  }
  const folders = (path: string) => {
    const prefix = path === '.' ? '' : `${path}/`
    const inside = Object.keys(files).filter((file) => file.startsWith(prefix))
    if (inside.length === 0) throw new Error('is missing')
    return [...new Set(inside.flatMap((file) => /^([^/]+)\//u.exec(file.slice(prefix.length))?.[1] ?? []))].toSorted()
  }
  return Object.assign(read, { folders })
}

const two = { 'skills/pdf/SKILL.md': skill('pdf'), 'skills/mail/SKILL.md': skill('mail'), 'skills/notes/todo.txt': 'x' }
const workflow = `workflow:
  - id: facts
    type: llm
    config: { model: "m:a", system: List facts }
  - id: answer
    type: llm
    config: { model: "m:a", stream: true }
`
const parse = (top: string, files: Record<string, string> = two, rest = workflow) =>
  parsePipeline(`${top}\n${rest}`, undefined, readerOf(files))
const faultsIn = (...given: Parameters<typeof parse>) => {
  try {
    parse(...given)
  } catch (error) {
    return faultsOf(error).map(({ line, message }) => `${line}: ${message}`)
  }
  return []
}
const namesIn = ({ skills = [] }: Pipeline) => skills.map(({ name }) => name)
const configs = ({ workflow: steps }: Pipeline) => steps.map((step) => (step.type === 'llm' ? step.config : undefined))

describe('skills', () => {
  test('are the folders with a SKILL.md that a pattern finds, in order', () => {
    expect(parse('skills: [skills/*]').skills).toEqual([
      { name: 'mail', description: 'About mail', folder: 'skills/mail' },
      { name: 'pdf', description: 'About pdf', folder: 'skills/pdf' },
    ])
    expect(namesIn(parse('skills: [skills/pdf/]'))).toEqual(['pdf'])
    expect(namesIn(parse('skills: [skills/pdf, skills/*]'))).toEqual(['pdf', 'mail'])
  })

  test('are for the answering step and for routers, unless a step says otherwise', () => {
    const router = `
  - id: route
    type: router
    config: { model: "m:a" }
  - id: plain
    type: llm
    config: { model: "m:a", stream: false, skills: true }
  - id: answer
    type: llm
    config: { model: "m:a", stream: true, skills: false }
`
    expect(configs(parse('skills: [skills/pdf]')).map((config) => config?.skills?.length)).toEqual([undefined, 1])
    const { workflow: steps } = parse('skills: [skills/pdf]', two, `workflow:${router}`)
    expect(steps.map((step) => ('skills' in (step.config as object) ? 1 : 0))).toEqual([1, 1, 0])
  })

  test.each([
    ['in brackets', 'skills: [skills/*] # all'],
    ['as a list of lines', 'skills:\n  - skills/pdf # one\n  # and\n  - "skills/mail"\nhistory: server'],
    ['as far left as the key', 'skills:\n- skills/*\nhistory: server'],
    ['in brackets over lines', 'skills: [\n  skills/pdf, # one\n  skills/mail,\n  ]\nhistory: server'],
  ])('%s: the recorded text has what was read, and needs no files', (_, top) => {
    const files = { ...two, 'skills/mail/SKILL.md': skill('mail', '"Écrire: \\"un\\" mail #1"') }
    const pipeline = parse(top, files)
    expect(pipeline.source).toContain('skills/')
    const again = parsePipeline(pipeline.text)
    expect(again.skills).toEqual(pipeline.skills)
    expect(again.history).toBe(pipeline.history)
    expect(configs(again)[1]?.skills).toEqual(pipeline.skills)
    expect(again.skills!.find(({ name }) => name === 'mail')!.description).toBe('Écrire: "un" mail #1')
    // As the page checks a text that was recorded.
    expect(parsePipeline(pipeline.text, undefined, readerOf({})).skills).toEqual(pipeline.skills)
  })

  test('a description of several lines becomes one', () => {
    const files = {
      'skills/pdf/SKILL.md': '---\nname: pdf\ndescription: >-\n  Fills\n  forms.\n\n  And more\n---\nBody',
    }
    expect(parse('skills: [skills/pdf]', files).skills![0]!.description).toBe('Fills forms. And more')
  })
})

describe('the open format', () => {
  const wrong = (text: string) => faultsIn('skills: [skills/pdf]', { 'skills/pdf/SKILL.md': text })
  const file = 'skills/pdf/SKILL.md'

  test.each([
    ['no front matter', '# pdf', `1: ${file}:1:1 must begin with front matter`],
    ['empty front matter', '---\n---\n', `1: ${file}:1:1 has no fields`],
    ['no name', '---\ndescription: d\n---\n', `1: ${file}:2:1 "name" is missing`],
    ['no description', '---\nname: pdf\n---\n', `1: ${file}:2:1 "description" is missing`],
    ['an empty description', '---\nname: pdf\ndescription: ""\n---\n', `1: ${file}:3:14 "description" must be a text`],
    [
      'capital letters',
      skill('PDF'),
      `1: ${file}:2:7 "name" must have 1 to 64 small letters, digits and single hyphens`,
    ],
    ['a hyphen at the end', skill('pdf-'), `1: ${file}:2:7 "name" must have 1 to 64`],
    ['a long name', skill('p'.repeat(65)), `1: ${file}:2:7 "name" must have 1 to 64`],
    ['another name than the folder', skill('pdfs'), `1: ${file}:2:7 "name" is "pdfs", but the folder is "pdf"`],
    [
      'a long description',
      skill('pdf', 'd'.repeat(1025)),
      `1: ${file}:3:14 "description" has 1025 characters; at most 1024`,
    ],
    ['broken YAML', '---\nname: [\n---\n', `1: ${file}:`],
  ])('%s is a fault with its place', (_, text, message) => {
    const [fault] = wrong(text)
    expect(fault).toContain(message)
  })

  test('the longest name and description are accepted, and line ends of Windows', () => {
    const name = 'a'.repeat(64)
    const files = { [`skills/${name}/SKILL.md`]: skill(name, 'd'.repeat(1024)).replaceAll('\n', '\r\n') }
    expect(parse(`skills: [skills/*]`, files).skills![0]).toMatchObject({ name, description: 'd'.repeat(1024) })
  })

  test('unknown fields and allowed-tools are warnings, the others of the format are not', () => {
    const more = 'license: MIT\nmetadata: { author: me }\ncompatibility: any\nallowed-tools: Bash\nlicence: MIT\n'
    const { warnings } = parse('history: server\nskills: [skills/pdf]', {
      'skills/pdf/SKILL.md': skill('pdf', 'd', more),
    })
    expect(warnings).toEqual([
      {
        line: 2,
        column: 1,
        message: `${file}:7:1 "allowed-tools" is ignored: a skill gives an agent no tools and no rights`,
      },
      { line: 2, column: 1, message: `${file}:8:1 unknown field "licence" (did you mean "license"?)` },
    ])
  })

  test('skillBody leaves the front matter out', () => {
    expect(skillBody(skill('pdf'))).toBe('# pdf')
    expect(skillBody('No front matter\n---\n')).toBe('No front matter\n---')
  })
})

describe('mistakes', () => {
  test.each([
    ['a folder that is missing', 'skills: [skills/pdff]', 'the file skills/pdff/SKILL.md is missing'],
    ['a pattern without skills', 'skills: [skills/notes/*]', 'there is no folder with a SKILL.md in skills/notes'],
    ['a pattern without a folder', 'skills: [skill/*]', 'the folder skill is missing'],
    ['..', 'skills: [../skills/*]', 'the folder ../skills/* must not leave the folder of this file'],
    ['an absolute path', 'skills: [/etc/*]', 'the folder /etc/* must be relative'],
    ['the folder of the file', 'skills: [.]', 'must be one below that of this file'],
    ['* inside of a path', 'skills: ["skills/*/pdf"]', 'may have "*" only as its last part'],
    ['no list', 'skills: skills/*', '"skills" must be a list'],
    [
      'a name twice',
      'skills: [{ name: a, description: d, folder: x/a }, { name: a, description: d, folder: y/a }]',
      'duplicate skill "a"',
    ],
    [
      'a recorded folder that leaves',
      'skills: [{ name: a, description: d, folder: ../a }]',
      'must be a folder below that of this file',
    ],
  ])('%s', (_, top, message) => {
    expect(faultsIn(top).join('\n')).toContain(message)
  })

  test('two skills with one name: both places', () => {
    const files = { ...two, 'more/pdf/SKILL.md': skill('pdf') }
    expect(faultsIn('skills:\n  - skills/*\n  - more/*', files)).toEqual([
      '3: the skill "pdf" is in more/pdf and, by line 2, in skills/pdf; rename one of them',
    ])
  })

  test('a tool useSkill of one’s own: both places', () => {
    const rest = 'workflow:\n  - id: a\n    type: llm\n    config: { model: "m:a", stream: true, tools: [useSkill] }\n'
    expect(faultsIn('skills: [skills/*]', two, rest)).toEqual([
      '5: "useSkill" is the tool that reads the skills of line 1; rename yours, or set skills: false here',
    ])
    expect(faultsIn('history: server', two, rest)).toEqual([])
  })

  test('a secret in a skill is a fault, as in a prompt', () => {
    const known = {
      stepTypes: [],
      tools: [],
      callbacks: [],
      providers: ['m'],
      secrets: [{ value: 'hunter2hunter2', from: 'X', cure: 'no' }],
    }
    const files = { 'skills/pdf/SKILL.md': `${skill('pdf')}hunter2hunter2` }
    expect(() => parsePipeline(`skills: [skills/*]\n${workflow}`, known, readerOf(files))).toThrow(
      'skills/pdf/SKILL.md:7:1 this is a secret, the value of X',
    )
  })

  test('without a reader: where skills can be read', () => {
    expect(() => parsePipeline(`skills: [skills/*]\n${workflow}`)).toThrow(
      'only agents folders and loadYaml read skills',
    )
  })
})

describe('system', () => {
  const systemOf = (system: string, files: Record<string, string> = { 'AGENTS.md': 'Be *kind* to $input.name.' }) =>
    parse(
      'history: server',
      files,
      `workflow:\n  - id: a\n    type: llm\n    config:\n      model: "m:a"\n      system: ${system}\n`,
    )

  test('may be a list of texts and files, which are joined; the recorded text has them', () => {
    const pipeline = systemOf('[{ file: AGENTS.md }, "You are our support.", { file: AGENTS.md }]')
    const [config] = configs(pipeline)
    expect(config!.system).toBe('Be *kind* to $input.name.\n\nYou are our support.\n\nBe *kind* to $input.name.')
    expect(configs(parsePipeline(pipeline.text))[0]!.system).toBe(config!.system)
  })

  test('faults have their places', () => {
    const faults = (system: string) => {
      try {
        systemOf(system)
      } catch (error) {
        return faultsOf(error).map(({ message }) => message)
      }
      return []
    }
    expect(faults('[{ file: NONE.md }]')).toEqual(['the file NONE.md is missing'])
    expect(faults('["About $nothing"]')[0]).toContain('$nothing')
    expect(faults('[[a]]')[0]).toContain('must be a string')
  })
})
