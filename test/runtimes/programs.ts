/** Bun, Deno and workerd, from npm. They are 300 MB, so they are no dependencies: the first test that needs them installs them, once per user. */
import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Those that docs/runtimes.md names. */
export const versions = { bun: '1.4.5', deno: '2.9.6', workerd: '1.20261117.1' }
export type Program = keyof typeof versions

/** The program itself, not what npm links: that needs an install script. */
const files: Record<Program, string> = {
  bun: 'node_modules/@oven/*/bin/bun',
  deno: 'node_modules/@deno/*/deno',
  workerd: 'node_modules/@cloudflare/workerd-*/bin/workerd',
}

export type Programs = Record<Program, string>

/** Where each is, or why they cannot be had. */
export async function findPrograms(): Promise<Programs | Error> {
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const specs = Object.entries(versions).map(([name, version]) => `${name}@${version}`)
  const folder = join(cache, 'millrace-tests', specs.join('_'))
  try {
    if (!existsSync(folder)) await install(specs, folder)
    const found = Object.entries(files).map(([name, pattern]) => [name, globSync(pattern, { cwd: folder })[0]] as const)
    const missing = found.filter(([, path]) => path === undefined).map(([name]) => name)
    if (missing.length > 0) return new Error(`npm has no ${missing.join(', ')} for this machine`)
    return Object.fromEntries(found.map(([name, path]) => [name, join(folder, path!)])) as Programs
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    return new Error(`npm cannot install ${specs.join(', ')}: ${stderr ?? String(error)}`)
  }
}

/** Complete or not at all, also when two tests install it at once. */
async function install(specs: string[], folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  const made = mkdtempSync(`${folder}-`)
  try {
    writeFileSync(join(made, 'package.json'), '{}')
    const flags = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts']
    await run('npm', ['install', ...flags, ...specs], { cwd: made, timeout: 300_000 })
    renameSync(made, folder)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    if (!existsSync(folder)) throw error
  }
}
