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
  import('../dist/cli/main.js')
    .then((cli) => cli.main(process.argv))
    .catch((error) => {
      console.error('millrace: ' + error.message)
      process.exitCode = 1
    })
}
