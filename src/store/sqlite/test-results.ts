/** The table `test_results` of a SQLite file. */
import { parseJson } from '../../part/json.ts'
import {
  keepsTestResults,
  keptTestResults,
  toTestResult,
  type TestResultRow,
  type TestResults,
} from '../../part/test-result.ts'
import type { TableContext } from './ledger.ts'

/** `n`: a time in µs. `failures`, `warnings`: JSON. NULL: there is none. */
export const testResultsTable = `
  CREATE TABLE test_results (
    n INTEGER PRIMARY KEY,
    test TEXT NOT NULL,
    agent TEXT NOT NULL,
    time INTEGER NOT NULL,
    user TEXT NOT NULL,
    model TEXT,
    status TEXT NOT NULL,
    is_live INTEGER NOT NULL,
    run TEXT,
    tokens INTEGER NOT NULL,
    cost REAL,
    duration INTEGER NOT NULL,
    failures TEXT NOT NULL,
    warnings TEXT NOT NULL
  );
  CREATE INDEX test_results_by_test ON test_results (test, n);`

/** Where it was run: NULL for the page. */
export const testSource = 'ALTER TABLE test_results ADD COLUMN source TEXT'

const numberAt = (time: number) => Math.floor(time) * 1000

export function createSqliteTestResults({ db, write, reading, now = Date.now }: TableContext): TestResults {
  const insert = db.prepare(
    `INSERT INTO test_results
     VALUES (max(:n, 1 + coalesce((SELECT max(n) FROM test_results), 0)), :test, :agent, :time, :user, :model, :status,
       :isLive, :run, :tokens, :cost, :duration, :failures, :warnings, :source)`,
  )
  const ofTest = db.prepare('SELECT * FROM test_results WHERE test = ? ORDER BY n DESC LIMIT ?')
  const dropMore = db.prepare(
    `DELETE FROM test_results WHERE test = :test AND n <= (
       SELECT n FROM test_results WHERE test = :test ORDER BY n DESC LIMIT 1 OFFSET ${keptTestResults})`,
  )
  const dropOld = db.prepare('DELETE FROM test_results WHERE n < ?')
  const rename = db.prepare('UPDATE test_results SET test = :to WHERE test = :test')
  const forget = db.prepare('DELETE FROM test_results WHERE test = ?')

  return {
    async add(given) {
      const {
        model = null,
        run = null,
        cost = null,
        source = null,
        isLive,
        failures,
        warnings,
        ...row
      } = toTestResult(given)
      const texts = { failures: JSON.stringify(failures), warnings: JSON.stringify(warnings) }
      await write('keep a test result', () => {
        insert.run({ n: numberAt(now()), ...row, model, run, cost, source, isLive: isLive ? 1 : 0, ...texts })
        dropMore.run({ test: row.test })
        dropOld.run(numberAt(now() - keepsTestResults))
      })
    },
    of: async (test, limit = keptTestResults) =>
      reading('read test results', () => ofTest.all(test.slice(0, 512), limit).map(toRow)),
    async rename(test, to) {
      await write('rename test results', () => {
        forget.run(to)
        rename.run({ test, to })
      })
    },
    async forget(test) {
      await write('delete test results', () => forget.run(test))
    },
  }
}

function toRow({
  is_live,
  model,
  run,
  cost,
  source,
  failures,
  warnings,
  ...row
}: Record<string, unknown>): TestResultRow {
  return {
    ...row,
    isLive: is_live === 1,
    ...(model !== null && { model }),
    ...(run !== null && { run }),
    ...(cost !== null && { cost }),
    ...(source !== null && { source }),
    failures: parseJson(failures as string),
    warnings: parseJson(warnings as string),
  } as unknown as TestResultRow
}
