/** What must hold before the package is published. Each fault names its cure. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { relativeLinks } from './package-page.ts'

/** Stands for the owner of the repository until there is one. It may stand in package.json only, so that one replacement is enough. */
export const placeholder = 'REPOSITORY-OWNER'

/** The documents that npm puts into every package. */
export const pages = ['README.md', 'CHANGELOG.md']

/** `tag` is what git has for this release: `v0.1.0`. */
export function releaseFaults(root: string, tag: string): string[] {
  const read = (file: string) => readFileSync(join(root, file), 'utf8')
  const text = read('package.json')
  const { version } = JSON.parse(text) as { version: string }
  const faults: string[] = []
  if (text.includes(placeholder)) {
    faults.push(`package.json still has ${placeholder}: put the owner of the repository in its place (CONTRIBUTING.md)`)
  }
  if (tag !== `v${version}`) {
    faults.push(`the tag is ${tag}, but package.json has version ${version}: tag v${version}, or run npm version`)
  }
  const heading = read('CHANGELOG.md').match(/^## .+$/mu)?.[0]
  if (!heading?.startsWith(`## ${version} `) || heading.endsWith('(not released)')) {
    faults.push(`CHANGELOG.md begins with "${heading}": its first section must be "## ${version} (<date>)"`)
  }
  for (const page of pages) {
    for (const target of relativeLinks(read(page))) {
      const [path] = target.split('#', 1)
      if (!existsSync(join(root, path!))) faults.push(`${page} links to ${target}, which is not in the repository`)
    }
  }
  return faults
}
