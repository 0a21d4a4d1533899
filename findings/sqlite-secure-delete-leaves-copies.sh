#!/bin/sh
# SQLite: with `secure_delete = ON`, pieces of deleted rows still stand in the file.
#
# One would guess: with this setting, what was deleted is overwritten with zeros, so that no byte of it is left.
# What happens: the deleted cell is overwritten. When a page is split or balanced, rows move to other pages, and a copy
# may stay in the unused part of the old one, which no later DELETE of the row knows of. VACUUM writes the file anew
# and leaves none.
# Why it matters here: "deleted is gone" needs a VACUUM (or pages that are emptied), not this setting alone.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{}' >package.json
npm install --silent --no-audit --no-fund sql.js@1.14.0
cat >try.cjs <<'END'
const main = async () => {
  const SQL = await require('sql.js')()
  const db = new SQL.Database()
  const left = () => {
    const bytes = Buffer.from(db.export())
    db.run('PRAGMA secure_delete = ON')
    return bytes.toString('latin1').split('SECRET-').length - 1
  }
  db.run('PRAGMA secure_delete = ON; CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT)')
  for (let i = 0; i < 3000; i++) {
    const note = (i % 3 === 0 ? 'PUBLIC-' : 'SECRET-') + i + 'x'.repeat(20 + (i % 300))
    db.run('INSERT INTO notes VALUES (?, ?)', [(i * 7919) % 100003, note])
  }
  db.run("DELETE FROM notes WHERE note LIKE 'SECRET-%'")
  const [rows] = db.exec("SELECT count(*) FROM notes WHERE note LIKE 'SECRET-%'")[0].values[0]
  const deleted = left()
  db.run('VACUUM')
  const vacuumed = left()
  const version = db.exec('SELECT sqlite_version()')[0].values[0][0]
  console.log(`SQLite ${version}: ${rows} rows left, ${deleted} secrets in the file; after VACUUM ${vacuumed}`)
  process.exitCode = rows === 0 && deleted > 0 && vacuumed === 0 ? 0 : 1
}
main()
END
node try.cjs
