/**
 * The tables `texts` and `text_uses`: texts that entries share (`shared-texts.ts`), and which runs use them. A text is deleted with the last run
 * that uses it.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { FindText, SharedTexts } from '../shared-texts.ts'

export interface TextTable {
  find: FindText
  /** Call these inside a transaction. `run` is the run's number. Stores the texts that are not there yet, and returns their characters. */
  add(run: number, shared: SharedTexts): number
  /** Forgets some of a run's uses, and the texts that nobody else uses. Returns whether there were any. */
  release(run: number, most: number): boolean
}

/** Creates the tables. For the migration. */
export const textTables = `
   CREATE TABLE texts (
     id INTEGER PRIMARY KEY,
     hash TEXT NOT NULL UNIQUE,
     -- 1: a list of messages, each as itself or by its hash.
     is_list INTEGER NOT NULL,
     -- How many runs and lists refer to it.
     uses INTEGER NOT NULL,
     text TEXT NOT NULL
   );
   CREATE TABLE text_uses (
     run INTEGER NOT NULL,
     text INTEGER NOT NULL,
     PRIMARY KEY (run, text)
   ) WITHOUT ROWID;`

export function createTexts(db: DatabaseSync): TextTable {
  const arrays = { returnArrays: true }
  const byHash = db.prepare('SELECT text, is_list FROM texts WHERE hash = ?', arrays)
  const idOf = db.prepare('SELECT id FROM texts WHERE hash = ?', arrays)
  const insert = db.prepare('INSERT INTO texts (hash, is_list, uses, text) VALUES (?, ?, 0, ?)')
  const use = db.prepare('INSERT OR IGNORE INTO text_uses (run, text) VALUES (?, ?)')
  const more = db.prepare('UPDATE texts SET uses = uses + 1 WHERE id = ?')
  const less = db.prepare('UPDATE texts SET uses = uses - 1 WHERE id = ? RETURNING uses, is_list', arrays)
  const textAt = db.prepare('SELECT text FROM texts WHERE id = ?', arrays)
  const remove = db.prepare('DELETE FROM texts WHERE id = ?')
  const usesOf = db.prepare('SELECT text FROM text_uses WHERE run = ? LIMIT +?', arrays)
  const unuse = db.prepare('DELETE FROM text_uses WHERE run = ? AND text = ?')

  /** Characters that the current call of `add` has stored. */
  let added = 0

  function put(hash: string, texts: SharedTexts['texts']): number {
    const known = numberIn(idOf.get(hash))
    if (known !== undefined) return known
    const { text, parts } = texts.get(hash)!
    const json = text()
    added += json.length
    const id = Number(insert.run(hash, parts === undefined ? 0 : 1, json).lastInsertRowid)
    for (const part of new Set(parts)) more.run(put(part, texts))
    return id
  }

  function drop(id: number): void {
    const [uses, isList] = (less.get(id) ?? []) as unknown as number[]
    if (uses === undefined || uses > 0) return
    const parts = isList === 1 ? partsOf(String((textAt.get(id) as unknown as [string])[0])) : []
    remove.run(id)
    for (const part of parts) {
      const at = numberIn(idOf.get(part))
      if (at !== undefined) drop(at)
    }
  }

  return {
    find(hash) {
      const [text, isList] = (byHash.get(hash) ?? []) as unknown as [string?, number?]
      return text === undefined ? undefined : { text, isList: isList === 1 }
    },
    add(run, { roots, texts }) {
      added = 0
      for (const hash of roots) {
        const id = put(hash, texts)
        if (use.run(run, id).changes === 1) more.run(id)
      }
      return added
    },
    release(run, most) {
      const uses = usesOf.all(run, Math.min(most, 1000)).map((row) => numberIn(row)!)
      for (const id of uses) {
        unuse.run(run, id)
        drop(id)
      }
      return uses.length > 0
    },
  }
}

function numberIn(row: unknown): number | undefined {
  return (row as [number] | undefined)?.[0]
}

function partsOf(list: string): Set<string> {
  return new Set((JSON.parse(list) as unknown[]).filter((item) => typeof item === 'string'))
}
