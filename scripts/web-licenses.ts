/** Writes `licenses.txt` beside the page: the packages that are in its files, with their licences. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'

const permissive = /^\(?(MIT|ISC|Apache-2\.0|BSD-[23]-Clause|0BSD|Unlicense)( (OR|AND) .*)?\)?$/u

export function writeLicenses(): Plugin {
  return {
    name: 'licenses',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
      const folders = new Set(modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/u.exec(id)?.[0] ?? []))
      const texts = [...folders].map(licenseOf).sort()
      this.emitFile({ type: 'asset', fileName: 'licenses.txt', source: [...new Set(texts)].join('\n') })
    },
  }
}

/** Throws for a package whose licence does not allow this. */
function licenseOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
    'name' | 'version' | 'license',
    string
  >
  if (!permissive.test(license)) throw new Error(`${name} has the licence ${license}`)
  const [file] = globSync('{LICENSE,LICENCE,license,licence}*', { cwd: folder })
  const text =
    file !== undefined && existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8').trim() : ''
  return `${name} ${version}: ${license}\n\n${text}\n\n${'-'.repeat(80)}\n`
}
