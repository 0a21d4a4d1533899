/** `millrace init`: a folder to begin with. What is there already is left as it is. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { messageOf, MillraceError } from '../../part/error.ts'
import { editorSchema, schemaFile } from '../editor-schema.ts'
import { agentText, configText, ignored, ignoreText } from '../init-files.ts'
import { paint } from '../style.ts'

export async function initCommand(dir: string): Promise<void> {
  const agents = join(dir, 'agents')
  try {
    mkdirSync(agents, { recursive: true })
  } catch (error) {
    throw new MillraceError('usage', `The folder ${agents} cannot be made: ${messageOf(error)}`)
  }
  const config = readdirSync(agents).find((name) => /^millrace\.config\.m?[jt]s$/u.test(name))
  write(join(agents, 'assistant.yaml'), agentText)
  write(join(agents, config ?? (isModule(agents) ? 'millrace.config.ts' : 'millrace.config.mts')), configText)
  // After the config: its names are in it.
  if (!write(join(agents, schemaFile), await editorSchema(agents))) {
    process.stdout.write(`      millrace schema ${agents} > ${join(agents, schemaFile)} brings it up to date\n`)
  }
  writeIgnore(join(dir, '.gitignore'))

  const command = process.env['npm_command'] === 'exec' ? 'npx millrace' : 'millrace'
  const away = relative('.', dir)
  const lines = [
    ...(away === '' ? [] : [`cd ${/^[\w./-]+$/u.test(away) ? away : JSON.stringify(away)}`]),
    `${command} run assistant -m "What is 12*7?"`,
    `${command} serve`,
  ]
  process.stdout.write(`\nNext\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

/** One that is there is its owner's: what it lacks is said, not added. */
function writeIgnore(path: string): void {
  if (!existsSync(path)) return void write(path, ignoreText)
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/$/gu, ''))
  const missing = ignored.filter((each) => !lines.includes(each.replace(/\/$/u, '')))
  if (missing.length === 0) return
  process.stdout.write(`${paint('yellow', 'kept')}  ${path}\n      add to it: ${missing.join(', ')}\n`)
}

/** False when there is such a file: it is kept. */
function write(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      process.stdout.write(`${paint('yellow', 'kept')}  ${path}\n`)
      return false
    }
    throw new MillraceError('usage', `${path} cannot be written: ${messageOf(error)}`)
  }
  process.stdout.write(`${paint('green', 'wrote')} ${path}\n`)
  return true
}

/** Whether Node takes a plain .ts file there for a module without a word about it. */
function isModule(dir: string): boolean {
  for (let at = resolve(dir); ; at = dirname(at)) {
    const file = join(at, 'package.json')
    if (existsSync(file)) {
      try {
        return (JSON.parse(readFileSync(file, 'utf8')) as { type?: unknown }).type === 'module'
      } catch {
        // Whoever reads it next says what is wrong with it.
        return false
      }
    }
    if (at === dirname(at)) return false
  }
}
