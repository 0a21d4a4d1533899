/**
 * Writes the JavaScript of `dist`: the command and the public doors, over a few chunks that they share. Loading a module costs
 * Node more than running it. One copy of each module serves the command and a config that imports `millrace`. Packages
 * stay outside. tsc writes the types.
 */
import { globSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { rolldown } from 'rolldown'
import manifest from '../package.json' with { type: 'json' }

const root = resolve(import.meta.dirname, '..')
const dist = resolve(root, 'dist')
const doors = Object.values(manifest.exports).flatMap((door) =>
  typeof door === 'string' ? [] : [/^\.\/dist\/(.*)\.js$/u.exec(door.default)![1]!],
)
/** Threads are modules in a URL: other bundlers lose a file. See `src/store/tables/query-thread.ts`. */
async function threadSource(file: string): Promise<string> {
  const thread = await rolldown({
    input: resolve(root, file),
    platform: 'node',
    external: /^[^./]/u,
    transform: { target: 'es2024' },
  })
  const { output } = await thread.generate({ codeSplitting: false, comments: { jsdoc: false }, minify: 'dce-only' })
  await thread.close()
  return output[0].code
}

/** The module that has the URL → the name of the URL, and the thread's module. */
const threads = new Map([
  ['src/store/tables/query-thread.ts', ['queryThread', 'src/store/tables/read-thread.ts']],
  ['src/script/worker-url.ts', ['workerUrl', 'src/script/worker.ts']],
] as const)
const sources = new Map<string, string>()
for (const [file, [name, thread]] of threads) {
  const source = JSON.stringify(await threadSource(thread))
  sources.set(
    resolve(root, file),
    `export const ${name} = new URL('data:text/javascript,' + encodeURIComponent(${source}))`,
  )
}
const bundle = await rolldown({
  plugins: [
    {
      name: 'thread-in-url',
      load: (id) => sources.get(id) ?? null,
    },
  ],
  input: Object.fromEntries(['cli/main', ...doors].map((name) => [name, resolve(root, `src/${name}.ts`)])),
  platform: 'node',
  external: /^[^./]/u,
  transform: { target: 'es2024' },
})
const { output } = await bundle.write({
  dir: dist,
  chunkFileNames: 'chunks/[name].js',
  // The types have them. They would be an eighth of what a start reads.
  comments: { jsdoc: false },
})
await bundle.close()
// What an earlier build has left. The page is not ours: `build-web.ts` does not build it again when nothing has changed.
const written = new Set(output.map(({ fileName }) => resolve(dist, fileName)))
for (const file of globSync('**/*.js', { cwd: dist, exclude: ['web/**'] })) {
  if (!written.has(resolve(dist, file))) rmSync(resolve(dist, file))
}
