/** Reads the files of skills for a model: text below the skill's own folder, in pieces. Error messages contain no absolute paths. */
import type { SkillFiles, SkillPiece } from '../engine/skills.ts'
import { MillraceError } from '../part/error.ts'
import { didYouMean } from '../pipeline/nearest.ts'
import { skillBody } from '../pipeline/skills.ts'
import { isInside } from './prompt-reader.ts'

type Fs = typeof import('node:fs')

/** Characters of one piece. */
const piece = 32 * 1024
/** Bytes. */
const largest = 8 * 1024 * 1024
/** Files that are listed, and folders that are entered for it. */
const mostFiles = 200
const deepest = 8

/** `dir`: the folder of the agents. */
export function createSkillFiles(fs: Fs, dir: string): SkillFiles {
  return {
    read({ name, folder }, file, from = 0) {
      const root = rootOf(fs, dir, folder, name)
      const text = file === undefined ? skillBody(readText(fs, root, 'SKILL.md', name)) : readText(fs, root, file, name)
      return {
        ...cut(text, from, file ?? 'SKILL.md'),
        files: file === undefined && from === 0 ? filesIn(fs, root) : [],
      }
    },
  }
}

/** A folder from a recorded run may be anything. */
function rootOf(fs: Fs, dir: string, folder: string, name: string): string {
  const gone = () => new MillraceError('unknown-skill', `The folder of the skill "${name}" is not there any more.`)
  try {
    const root = fs.realpathSync(`${dir}/${folder}`)
    if (isInside(fs.realpathSync(dir), root) && fs.existsSync(`${root}/SKILL.md`)) return root
  } catch {
    // It is missing, or a loop of links.
  }
  throw gone()
}

function readText(fs: Fs, root: string, file: string, name: string): string {
  const bad = (why: string) => new MillraceError('bad-skill-file', `The file "${file}" of the skill "${name}" ${why}.`)
  const parts = file.split('/')
  if (file === '' || /^[/\\]|^[A-Za-z]:|\0|\\/u.test(file))
    throw bad('must be a path in its folder, such as references/forms.md')
  if (parts.includes('..')) throw bad('must not have "..": only files of the skill can be read')
  if (parts.some((part) => part.startsWith('.') && part !== '.'))
    throw bad('is hidden: names that begin with a dot cannot be read')
  let path: string
  try {
    path = fs.realpathSync(`${root}/${file}`)
  } catch (error) {
    const known = filesIn(fs, root)
    const { code } = error as { code?: string }
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw bad(`cannot be read (${code ?? 'unknown reason'})`)
    throw bad(`is missing${didYouMean(file, known)}. Its files: ${known.join(', ') || 'none'}`)
  }
  if (!isInside(root, path)) throw bad('is a link that leads out of its folder')
  const found = fs.statSync(path)
  if (!found.isFile()) throw bad(`is no file. Its files: ${filesIn(fs, root).join(', ') || 'none'}`)
  if (found.size > largest) throw bad(`is larger than ${largest / 1024 ** 2} MiB`)
  const bytes = fs.readFileSync(path)
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    if (!text.includes('\0')) return text
  } catch {
    // Not UTF-8.
  }
  throw bad('is a binary file: only text can be read')
}

/** Never between the halves of a character. */
function cut(text: string, from: number, file: string): Pick<SkillPiece, 'text' | 'next' | 'length'> {
  if (from > 0 && from >= text.length) {
    throw new MillraceError('bad-skill-file', `"from" is ${from}, but ${file} has ${text.length} characters.`)
  }
  let end = Math.min(text.length, from + piece)
  if (end < text.length && /[\uD800-\uDBFF]/u.test(text[end - 1]!)) end--
  return { text: text.slice(from, end), length: text.length, ...(end < text.length && { next: end }) }
}

/** The files of a skill besides `SKILL.md`, without hidden ones. */
function filesIn(fs: Fs, root: string): string[] {
  const found: string[] = []
  const walk = (folder: string, depth: number) => {
    const entries = fs
      .readdirSync(`${root}/${folder}`, { withFileTypes: true })
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      if (found.length === mostFiles) return
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (entry.name.startsWith('.') || path === 'SKILL.md') continue
      // Links are not followed: a link may lead to a folder that contains it.
      if (entry.isDirectory() && depth < deepest) walk(path, depth + 1)
      else if (entry.isFile()) found.push(path)
    }
  }
  walk('', 0)
  return found
}
