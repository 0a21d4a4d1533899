/** `millrace init`: creates a project. Existing files are kept. */
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
    throw new MillraceError('usage', `Cannot create the folder ${agents}: ${messageOf(error)}`)
  }
  const config = readdirSync(agents).find((name) => /^millrace\.config\.m?[jt]s$/u.test(name))
  write(join(agents, 'assistant.yaml'), agentText)
  write(join(agents, config ?? (isModule(agents) ? 'millrace.config.ts' : 'millrace.config.mts')), configText)
  // After the config, whose names the schema contains.
  if (!write(join(agents, schemaFile), await editorSchema(agents))) {
    process.stdout.write(`        update it with: millrace schema ${agents} > ${join(agents, schemaFile)}\n`)
  }
  writeIgnore(join(dir, '.gitignore'))

  const command = process.env['npm_command'] === 'exec' ? 'npx millrace' : 'millrace'
  const away = relative('.', dir)
  const lines = [
    ...(away === '' ? [] : [`cd ${/^[\w./-]+$/u.test(away) ? away : JSON.stringify(away)}`]),
    `${command} run assistant -m "What is 12*7?"`,
    `${command} chat`,
    `${command} serve`,
  ]
  process.stdout.write(`\nNext steps:\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

/** An existing file is not changed; missing lines are printed. */
function writeIgnore(path: string): void {
  if (!existsSync(path)) return void write(path, ignoreText)
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/$/gu, ''))
  const missing = ignored.filter((each) => !lines.includes(each.replace(/\/$/u, '')))
  if (missing.length === 0) return
  process.stdout.write(`${paint('yellow', 'exists ')} ${path}\n        add to it: ${missing.join(', ')}\n`)
}

/** False if the file exists already; it is kept. */
function write(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      process.stdout.write(`${paint('yellow', 'exists ')} ${path}\n`)
      return false
    }
    throw new MillraceError('usage', `Cannot write ${path}: ${messageOf(error)}`)
  }
  process.stdout.write(`${paint('green', 'created')} ${path}\n`)
  return true
}

/** Whether Node loads a plain .ts file there as a module without a warning. */
function isModule(dir: string): boolean {
  for (let at = resolve(dir); ; at = dirname(at)) {
    const file = join(at, 'package.json')
    if (existsSync(file)) {
      try {
        return (JSON.parse(readFileSync(file, 'utf8')) as { type?: unknown }).type === 'module'
      } catch {
        // A broken package.json is reported by npm and Node.
        return false
      }
    }
    if (at === dirname(at)) return false
  }
}
