#!/usr/bin/env node
// Old syntax only: an outdated Node must be able to parse this file.
if (Number(process.versions.node.split('.')[0]) < 24) {
  console.error(
    'millrace needs Node 24 or newer; this is ' +
      process.version +
      '. Install it into your project with: npm install node@24, then run: npx millrace',
  )
  process.exit(2)
} else {
  // Node keeps the compiled code for the next start. The folder is this user's own: who can write there decides what runs.
  const { XDG_CACHE_HOME, LOCALAPPDATA, HOME } = process.env
  const caches = XDG_CACHE_HOME || LOCALAPPDATA || (HOME && HOME + '/.cache')
  // Deno has none.
  const { enableCompileCache } = process.getBuiltinModule('node:module')
  if (caches && enableCompileCache) enableCompileCache(caches + '/millrace')
  import('../dist/cli/main.js')
    .then((cli) => cli.main(process.argv))
    .catch((error) => {
      console.error('millrace: ' + error.message)
      process.exitCode = 1
    })
}
