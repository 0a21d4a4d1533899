import type { ReadFolder } from '../pipeline/inlined.ts'

/** In bytes. An agent with all its prompts may have 1 MB. */
const largest = 256 * 1024

/**
 * Reads the prompt files of the agents in a folder: regular UTF-8 files of at most 256 KiB. Symlinks must resolve to a file in
 * the folder. One trailing line break is removed. Error messages do not contain absolute paths.
 */
export function createPromptReader(fs: typeof import('node:fs'), dir: string): ReadFolder {
  const readable = <T>(read: (path: string) => T) => {
    return (path: string): T => {
      try {
        return read(path)
      } catch (error) {
        const code = (error as { code?: unknown }).code
        if (code === 'ENOENT' || code === 'ENOTDIR') throw new Error('is missing', { cause: error })
        if (typeof code === 'string') throw new Error(`cannot be read (${code})`, { cause: error })
        throw error
      }
    }
  }
  return Object.assign(
    readable((path) => readPrompt(fs, dir, path)),
    { folders: readable((path) => foldersIn(fs, dir, path)) },
  )
}

/** Names in order, without those that begin with a dot. Links count: what they lead to is checked when a file is read. */
function foldersIn(fs: typeof import('node:fs'), dir: string, path: string): string[] {
  const folder = fs.realpathSync.native(`${dir}/${path}`)
  const root = fs.realpathSync.native(dir)
  if (folder !== root && !isInside(root, folder)) throw new Error('resolves to a path outside the agents folder')
  const entries = fs.readdirSync(folder, { withFileTypes: true })
  return entries
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith('.'))
    .map((entry) => entry.name)
    .toSorted()
}

function readPrompt(fs: typeof import('node:fs'), dir: string, path: string): string {
  // The native function needs one call of the system; the other asks for each part of the path.
  const file = fs.realpathSync.native(`${dir}/${path}`)
  if (!isInside(fs.realpathSync.native(dir), file))
    throw new Error('resolves to a path outside the agents folder; put the file itself there')
  const found = fs.statSync(file)
  if (!found.isFile()) throw new Error('is not a regular file')
  if (found.size > largest) throw new Error(`is larger than ${largest / 1024} KiB (${found.size} bytes)`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(fs.readFileSync(file))
  } catch (error) {
    if (error instanceof TypeError) throw new Error('is not UTF-8 text', { cause: error })
    throw error
  }
  return text.replace(/\r?\n$/u, '')
}

/** Whether a path lies in a folder. Pass real paths for both: only they show where symlinks lead. */
export function isInside(folder: string, path: string): boolean {
  const rest = path.slice(folder.length)
  return path.startsWith(folder) && (/[/\\]$/u.test(folder) || /^[/\\]/u.test(rest))
}
