/** Builds the page into `dist/web`, unless its inputs are those of the last build. */
import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const stamp = resolve(root, 'dist/web/.stamp')
const hash = createHash('sha256')
const pages = [
  'web/**/*',
  'src/{part,fold,wire,client,async}/**/*.ts',
  'scripts/{build-web,web-licenses}.ts',
  'package-lock.json',
]
const files = globSync(pages, { cwd: root, withFileTypes: true })
  .filter((file) => file.isFile() && !/\.test\.tsx?$/u.test(file.name))
  .map((file) => resolve(file.parentPath, file.name))
  .sort()
for (const file of files) hash.update(file).update('\0').update(readFileSync(file)).update('\0')
const inputs = hash.digest('hex')
if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== inputs) {
  const [{ build }, { default: config }] = await Promise.all([import('vite'), import('../web/vite.config.ts')])
  await build(config)
  writeFileSync(stamp, inputs)
}
