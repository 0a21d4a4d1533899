/** `millrace init`: creates a project. Existing files are kept. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { CommandContext } from '../context.ts'
import { messageOf, MillraceError } from '../../part/error.ts'
import { editorSchema, schemaFile } from '../editor-schema.ts'
import { agentText, configText, ignored, ignoreText } from '../init-files.ts'
import { paint } from '../style.ts'

export async function initCommand(context: CommandContext, dir: string): Promise<void> {
  const agents = join(dir, 'agents')
  try {
    mkdirSync(context.path(agents), { recursive: true })
  } catch (error) {
    throw new MillraceError('usage', `Cannot create the folder ${agents}: ${messageOf(error)}`)
  }
  const config = readdirSync(context.path(agents)).find((name) => /^millrace\.config\.m?[jt]s$/u.test(name))
  write(context, join(agents, 'assistant.yaml'), agentText)
  write(
    context,
    join(agents, config ?? (isModule(context, agents) ? 'millrace.config.ts' : 'millrace.config.mts')),
    configText,
  )
  // After the config, whose names the schema contains.
  if (!write(context, join(agents, schemaFile), await editorSchema(context, agents))) {
    context.stdout.write(`        update it with: millrace schema ${agents} > ${join(agents, schemaFile)}\n`)
  }
  writeIgnore(context, join(dir, '.gitignore'))

  const command = context.env['npm_command'] === 'exec' ? 'npx millrace' : 'millrace'
  const away = relative(context.path('.'), context.path(dir))
  const lines = [
    ...(away === '' ? [] : [`cd ${/^[\w./-]+$/u.test(away) ? away : JSON.stringify(away)}`]),
    `${command} run assistant -m "What is 12*7?"`,
    `${command} chat`,
    `${command} serve`,
  ]
  context.stdout.write(`\nNext steps:\n${lines.map((line) => `  ${line}\n`).join('')}`)
}

/** An existing file is not changed; missing lines are printed. */
function writeIgnore(context: CommandContext, path: string): void {
  if (!existsSync(context.path(path))) return void write(context, path, ignoreText)
  const lines = readFileSync(context.path(path), 'utf8')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/$/gu, ''))
  const missing = ignored.filter((each) => !lines.includes(each.replace(/\/$/u, '')))
  if (missing.length === 0) return
  context.stdout.write(`${paint(context, 'yellow', 'exists ')} ${path}\n        add to it: ${missing.join(', ')}\n`)
}

/** False if the file exists already; it is kept. */
function write(context: CommandContext, path: string, text: string): boolean {
  try {
    writeFileSync(context.path(path), text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      context.stdout.write(`${paint(context, 'yellow', 'exists ')} ${path}\n`)
      return false
    }
    throw new MillraceError('usage', `Cannot write ${path}: ${messageOf(error)}`)
  }
  context.stdout.write(`${paint(context, 'green', 'created')} ${path}\n`)
  return true
}

/** Whether Node loads a plain .ts file there as a module without a warning. */
function isModule(context: CommandContext, dir: string): boolean {
  for (let at = context.path(dir); ; at = dirname(at)) {
    const file = join(at, 'package.json')
    if (existsSync(context.path(file))) {
      try {
        return (JSON.parse(readFileSync(context.path(file), 'utf8')) as { type?: unknown }).type === 'module'
      } catch {
        // A broken package.json is reported by npm and Node.
        return false
      }
    }
    if (at === dirname(at)) return false
  }
}
