#!/bin/sh
# uPlot: in a browser whose language `Intl` refuses, importing the package throws.
#
# One would guess: a chart library formats numbers when it draws, with a fallback, or with the locale that the page
# gives it. At worst a chart is missing.
# What happens: the module calls `new Intl.NumberFormat(navigator.language)` while it is loaded. Browsers on Linux with
# the C locale report languages that are none (`en-US@posix`, `C`), so that whoever imports it statically has no page.
# Why it matters here: import it lazily, and behind a check of the language.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{}' >package.json
npm install --silent --no-audit --no-fund uplot@1.6.32
cat >try.mjs <<'END'
const give = (name, value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
const listens = { addEventListener() {}, removeEventListener() {}, dispatchEvent() {} }
give('window', listens)
give('document', listens)
give('matchMedia', () => listens)
give('devicePixelRatio', 1)
give('navigator', { language: process.argv[2] })
try {
  await import('uplot')
  console.log('loaded')
} catch (error) {
  console.log(error.name)
}
END
seen=''
for language in en-US C en-US@posix; do
  outcome=$(node try.mjs "$language")
  echo "uPlot 1.6.32, language $language: $outcome"
  seen="$seen $outcome"
done
[ "$seen" = ' loaded RangeError RangeError' ]
