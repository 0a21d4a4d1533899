/** The package as others get it: packed, and unpacked into a project. Needs `npm run build`, as `npm test` does. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { stagePackage } from '../../scripts/release/stage.ts'

const exec = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  name: string
  version: string
  bin: Record<string, string>
  exports: Record<string, string | { types: string; default: string }>
  dependencies: Record<string, string>
  peerDependencies: Record<string, string>
}

/** What `npm pack` does but for the build; its file, and the files in it. */
export async function packInto(folder: string, from = root): Promise<{ filename: string; files: string[] }> {
  const { stdout } = await exec('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    cwd: from,
  })
  const packed = JSON.parse(stdout) as { filename: string; files: { path: string }[] }[] | Record<string, never>
  const [{ filename, files }] = Object.values(packed) as [{ filename: string; files: { path: string }[] }]
  return { filename, files: files.map(({ path }) => path) }
}

/** The same from what a release publishes. */
export async function packReleaseInto(folder: string): Promise<{ filename: string; files: string[] }> {
  const staged = join(folder, 'package')
  await stagePackage(root, staged)
  return packInto(folder, staged)
}

/** What `npm install <tarball>` does, without a registry: dependencies are those of this checkout, and no others. */
export async function installPacked(project: string, tarball: string): Promise<void> {
  const installed = join(project, 'node_modules', manifest.name)
  mkdirSync(installed, { recursive: true })
  await exec('tar', ['xzf', tarball, '--strip-components=1', '-C', installed])
  for (const name of Object.keys(manifest.dependencies)) linkFrom(project, name)
  for (const [name, path] of Object.entries(manifest.bin)) linkBin(project, name, join(installed, path))
}

/** The Node that came with `npm ci`, as `npm install node@24` brings it. */
export function installNode(project: string): void {
  linkFrom(project, 'node')
  linkBin(project, 'node', process.execPath)
}

/** A package of this checkout. */
export function linkFrom(project: string, name: string): void {
  const link = join(project, 'node_modules', name)
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(join(root, 'node_modules', name), link)
}

function linkBin(project: string, name: string, target: string): void {
  mkdirSync(join(project, 'node_modules/.bin'), { recursive: true })
  symlinkSync(target, join(project, 'node_modules/.bin', name))
}
