/**
 * `node scripts/release.ts <tag> [<folder>]`: checks that this checkout can be published as `<tag>`, and says what cannot. With a folder,
 * puts the package there. It publishes nothing: .github/workflows/release.yml does, from that folder.
 */
import { resolve } from 'node:path'
import { releaseFaults } from './release/checks.ts'
import { stagePackage } from './release/stage.ts'

const root = resolve(import.meta.dirname, '..')
const [tag, folder] = process.argv.slice(2)
const faults =
  tag === undefined ? ['name the tag: node scripts/release.ts v1.2.3 [<folder>]'] : releaseFaults(root, tag)
for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exitCode = 1
else if (folder !== undefined) await stagePackage(root, resolve(folder))
