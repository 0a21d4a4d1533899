/** Another process in the database file: it holds the write lock for some ms, leaves it for some, and so on. */
import { DatabaseSync } from 'node:sqlite'

const [path, held, left] = process.argv.slice(2) as [string, string, string]
const db = new DatabaseSync(path, { timeout: 5000 })

function hold(): void {
  db.exec('BEGIN IMMEDIATE')
  setTimeout(() => {
    db.exec('COMMIT')
    setTimeout(hold, Number(left))
  }, Number(held))
}

hold()
process.stdout.write('ready at http://none\n')
