#!/usr/bin/env node
// Plain syntax: this line must still run on a Node that is too old for the rest.
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
