/** Puts into a folder what is published from it: the files of the package, with links that work on its page, and a manifest without our scripts. */
import { execFile } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { pages } from './checks.ts'
import { withAbsoluteLinks } from './package-page.ts'

const run = promisify(execFile)

interface Manifest {
  version: string
  repository: { url: string }
  scripts?: unknown
  devDependencies?: unknown
  allowScripts?: unknown
}

/** `dist` must be built. */
export async function stagePackage(root: string, folder: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root })
  const [{ files }] = Object.values(JSON.parse(stdout) as object) as [{ files: { path: string }[] }]
  for (const { path } of files) cpSync(join(root, path), join(folder, path))
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  // `prepack` builds, which a folder without the sources cannot.
  for (const ours of ['scripts', 'devDependencies', 'allowScripts'] as const) delete manifest[ours]
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  const repository = manifest.repository.url.replace(/^git\+/u, '').replace(/\.git$/u, '')
  for (const page of pages) {
    const text = readFileSync(join(root, page), 'utf8')
    writeFileSync(join(folder, page), withAbsoluteLinks(text, repository, `v${manifest.version}`, root))
  }
}
