/** The documents that are written out of the code. */
import { cliDoc } from './cli.ts'
import { partsDoc } from './parts.ts'
import { yamlDoc } from './yaml.ts'

const note = '<!-- Written by `npm run docs`: change the code, not this file. -->\n\n'

/** File → what it should hold. */
export function generatedDocs(): Map<string, string> {
  return new Map([
    ['docs/yaml.md', note + yamlDoc()],
    ['docs/cli.md', note + cliDoc()],
    ['docs/parts.md', note + partsDoc()],
  ])
}
