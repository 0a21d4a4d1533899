/** What a model can read of a skill: text below its folder, and nothing else. */
import * as fs from 'node:fs'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSkillFiles } from './skill-files.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-skills-'))
const agents = join(root, 'agents')
const skill = { name: 'pdf', description: 'd', folder: 'skills/pdf' }
const body = '---\nname: pdf\ndescription: d\n---\n\n# Forms\n\nFill them.\n'

function put(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), content)
}

beforeAll(() => {
  put('outside.txt', 'outside')
  put('agents/.env', 'KEY=hidden')
  put('agents/skills/other/SKILL.md', 'other')
  put('agents/skills/pdf/SKILL.md', body)
  put('agents/skills/pdf/references/forms.md', 'All forms')
  put('agents/skills/pdf/scripts/fill.py', 'print("fill")')
  put('agents/skills/pdf/.secret', 'hidden')
  put('agents/skills/pdf/image.png', new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0xff, 0xfe]))
  put('agents/skills/pdf/nul.txt', 'a\0b')
  symlinkSync(join(root, 'outside.txt'), join(agents, 'skills/pdf/link.txt'))
  symlinkSync('references/forms.md', join(agents, 'skills/pdf/inside.md'))
  symlinkSync('..', join(agents, 'skills/pdf/up'))
  symlinkSync(root, join(agents, 'skills/away'))
})
afterAll(() => rmSync(root, { recursive: true }))

const read = (file?: string, from?: number, folder = skill.folder) =>
  createSkillFiles(fs, agents).read({ ...skill, folder }, file, from)

describe('files of a skill', () => {
  test('the body comes without its front matter, and with the names of the files; links and hidden files are not listed', () => {
    expect(read()).toEqual({
      text: '# Forms\n\nFill them.',
      length: 19,
      files: ['image.png', 'nul.txt', 'references/forms.md', 'scripts/fill.py'],
    })
  })

  test('a file comes as it is: a script is text', () => {
    expect(read('scripts/fill.py')).toEqual({ text: 'print("fill")', length: 13, files: [] })
    expect(read('./references/forms.md').text).toBe('All forms')
    expect(read('inside.md').text).toBe('All forms')
  })

  test('a long text comes in pieces of 32 KB, never between the halves of a character', () => {
    const piece = 32 * 1024
    const long = `${'x'.repeat(piece - 1)}😀${'y'.repeat(piece)}end`
    put('agents/skills/pdf/long.txt', long)
    const pieces: string[] = []
    let from: number | undefined = 0
    for (let i = 0; i < 10 && from !== undefined; i++) {
      const { text, next, length } = read('long.txt', from)
      expect([length, text.length <= piece]).toEqual([long.length, true])
      pieces.push(text)
      from = next
    }
    expect(pieces.map(({ length }) => length)).toEqual([piece - 1, piece, 5])
    expect(pieces.join('')).toBe(long)
    rmSync(join(agents, 'skills/pdf/long.txt'))
    put('agents/skills/big/SKILL.md', `---\nname: big\ndescription: d\n---\n${'z'.repeat(piece + 1)}`)
    expect(read(undefined, 0, 'skills/big')).toMatchObject({ next: piece })
    expect(read(undefined, piece, 'skills/big')).toEqual({ text: 'z', length: piece + 1, files: [] })
  })

  test.each([
    ['a link out of the folder', 'link.txt', 'is a link that leads out of its folder'],
    ['a path through a link', 'up/other/SKILL.md', 'is a link that leads out of its folder'],
    ['..', '../other/SKILL.md', 'must not have ".."'],
    ['.. in the middle', 'references/../../../.env', 'must not have ".."'],
    ['an absolute path', '/etc/passwd', 'must be a path in its folder'],
    ['a backslash', '..\\other', 'must be a path in its folder'],
    ['a hidden file', '.secret', 'is hidden'],
    ['a binary file', 'image.png', 'is a binary file: only text can be read'],
    ['a file with a NUL', 'nul.txt', 'is a binary file'],
    ['a folder', 'references', 'is no file'],
    [
      'a missing file',
      'references/form.md',
      'is missing (did you mean "references/forms.md"?). Its files: image.png, nul.txt, references/forms.md',
    ],
  ])('%s is an error without a path of the machine', (_, file, message) => {
    const tried = () => read(file)
    expect(tried).toThrow(message)
    try {
      tried()
    } catch (error) {
      expect((error as Error).message).not.toContain(root)
    }
  })

  test('a place behind the end is an error', () => {
    expect(() => read('scripts/fill.py', 13)).toThrow('"from" is 13, but scripts/fill.py has 13 characters.')
  })

  test.each(['.', '', '..', '../agents', 'skills/../../outside', '/etc', 'skills', 'skills/gone', 'skills/away'])(
    'the folder %j of a recorded run is no skill',
    (folder) => {
      expect(() => read(undefined, 0, folder)).toThrow('The folder of the skill "pdf" is not there any more.')
      expect(() => read('.env', 0, folder)).toThrow('is not there any more')
    },
  )
})
