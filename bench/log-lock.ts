/** A second process on the database file. It alternately holds and releases the write lock, for the given times in ms. */
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
