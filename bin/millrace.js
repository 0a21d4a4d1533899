#!/usr/bin/env node
// Plain syntax: this line must still run on a Node that is too old for the rest.
if (Number(process.versions.node.split('.')[0]) < 24) {
  console.error(
    'millrace needs Node 24 or newer; this is ' + process.version + '. From a checkout: npx millrace, or npm start.',
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
