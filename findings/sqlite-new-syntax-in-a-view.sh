#!/bin/sh
# SQLite: one view written with newer SQL makes every table of the file unreadable for an older SQLite.
#
# One would guess: an older SQLite can read the tables of a file, and only the view that it does not understand fails
# when somebody uses it.
# What happens: SQLite parses the whole schema before the first statement that names any table. `ORDER BY` inside an
# aggregate came with 3.44; an older one answers every query, also of plain tables, with "malformed database schema".
# Why it matters here: people open the database of a server with the `sqlite3` of their system (3.40 in Debian 12).
# A view for their convenience must not use newer syntax than that.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{}' >package.json
npm install --silent --no-audit --no-fund older@npm:sql.js@1.8.0 newer@npm:sql.js@1.14.0
cat >try.cjs <<'END'
const version = (SQL) => new SQL.Database().exec('SELECT sqlite_version()')[0].values[0][0]
const main = async () => {
  const [older, newer] = [await require('older')(), await require('newer')()]
  console.log(`written by SQLite ${version(newer)}, read by SQLite ${version(older)}`)
  const file = (view) => {
    const db = new newer.Database()
    db.run(`CREATE TABLE runs (id, name); INSERT INTO runs VALUES (2, 'b'), (1, 'a'); CREATE VIEW names AS ${view}`)
    return db.export()
  }
  const read = (bytes) => {
    try {
      return new older.Database(bytes).exec('SELECT count(*) FROM runs')[0].values[0][0]
    } catch (error) {
      return error.message
    }
  }
  const plain = read(file('SELECT group_concat(name) FROM runs'))
  const ordered = read(file('SELECT group_concat(name ORDER BY id) FROM runs'))
  console.log(`rows of the table, beside a view without ORDER BY: ${plain}`)
  console.log(`rows of the table, beside a view with ORDER BY: ${ordered}`)
  process.exitCode = plain === 2 && /malformed database schema/.test(ordered) ? 0 : 1
}
main()
END
node try.cjs
