/** `npm run docs`: brings the documents that are written out of the code up to date. */
import { writeFileSync } from 'node:fs'
import { generatedDocs } from './docs/all.ts'

for (const [file, text] of generatedDocs()) {
  writeFileSync(new URL(`../${file}`, import.meta.url), text)
  console.log(file)
}
