/** Mutated recordings through every route, over the tables of SQLite. */
import { hasEnded } from '../../src/part/log.ts'
import { createHandler } from '../../src/server/handler.ts'
import { readNdjson, verify } from '../../src/store/ndjson.ts'
import { createEngine } from '../support/engine.ts'
import { askAll, followed, importTo, ofAll, ofOne } from './every-route.ts'
import { legalRuns, mutated } from './mutate.ts'

const agent = 'workflow: [{ id: answer, type: llm, config: { model: "demo:assistant", stream: true } }]'

/** Returns how many were imported. Throws for the first seed with which something fails. */
export async function tryRoutes(from: number, count: number): Promise<number> {
  const engine = createEngine({ agents: { a: agent } })
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const handler = createHandler({ runtime: engine.runtime, authorize: () => true, onError })
  const legal = legalRuns(1)
  let imported = 0

  function refuse(seed: number, what: string): void {
    const [error] = errors
    if (error !== undefined) throw new Error(`seed ${seed}: ${what}`, { cause: error })
    throw new Error(`seed ${seed}: ${what}`)
  }

  try {
    for (let seed = from; seed < from + count; seed++) {
      const answer = await importTo(handler, mutated(legal, seed).text)
      if (answer.status !== 201) {
        const isRefused = answer.status === 400 && /line \d+: |no entries/u.test(answer.text)
        if (!isRefused) refuse(seed, `import: ${answer.status} ${answer.text}`)
        continue
      }
      imported++
      const { id, lastSeq } = JSON.parse(answer.text) as { id: string; lastSeq: number }
      const row = (await engine.store.runs.get(id))!
      const paths = hasEnded(row.status) ? [...ofOne, ...followed] : ofOne
      for (const { path, status, text } of await askAll(handler, paths, { id, thread: row.threadId, last: lastSeq })) {
        if (status >= 500) refuse(seed, `${path}: ${status} ${text.slice(0, 200)}`)
        if (!path.endsWith('/export')) continue
        const { entries, faults } = readNdjson(text)
        if (faults.length > 0 || verify(entries, { open: true }).length > 0) refuse(seed, `${path} is no recording`)
      }
      if (errors.length > 0) refuse(seed, 'an error was reported')
    }
    for (const { path, status, text } of await askAll(handler, ofAll, { id: 'x', thread: 'x', last: 1 })) {
      if (status >= 400) refuse(from, `${path} after all: ${status} ${text.slice(0, 200)}`)
    }
    return imported
  } finally {
    await engine.close()
  }
}
