/** The documents that are written out of the code, whole or in part. */
import { readFileSync } from 'node:fs'
import { cliDoc } from './cli.ts'
import { pageTextsDoc } from './page-texts.ts'
import { partsSection } from './parts.ts'
import { projectionsSection } from './projections.ts'
import { yamlDoc } from './yaml.ts'

const note = '<!-- Written by `npm run docs`: change the code, not this file. -->\n\n'

/** File → what it should hold. */
export function generatedDocs(): Map<string, string> {
  return new Map([
    ['docs/yaml.md', note + yamlDoc()],
    ['docs/cli.md', note + cliDoc()],
    ['web/texts.txt', pageTextsDoc()],
    [protocol, withSections(protocol, { parts: partsSection(), projections: projectionsSection() })],
  ])
}

const protocol = 'docs/streaming-protocol.md'

/** The document with these sections written anew. Each stands between a comment with its name and `<!-- end -->`. */
function withSections(file: string, sections: Record<string, string>): string {
  let text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
  for (const [name, section] of Object.entries(sections)) {
    const begin = `<!-- ${name}: written by \`npm run docs\` -->\n`
    const from = text.indexOf(begin)
    const to = text.indexOf('<!-- end -->', from)
    if (from < 0 || to < 0) throw new Error(`${file} has no place for ${name}`)
    text = `${text.slice(0, from)}${begin}\n${section.trim()}\n\n${text.slice(to)}`
  }
  return text
}
