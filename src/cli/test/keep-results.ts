/** The page shows what came of `millrace test`: results are left in the data folder, or sent to the server of `--url`. They never fail the command. */
import { realpathSync } from 'node:fs'
import { createCleaner } from '../../fold/redact.ts'
import { MillraceError, messageOf, wholeMessage } from '../../part/error.ts'
import type { NewTestResult } from '../../part/test-result.ts'
import { secretValues } from '../../project/secrets.ts'
import { casesFolder } from '../../regress/case-folder.ts'
import { leaveResults } from '../../regress/result-files.ts'
import { caseId, resultRow } from '../../regress/result-row.ts'
import type { CaseResult, CaseRun } from '../../regress/run-case.ts'
import type { RunCasesOptions } from '../../regress/run-cases.ts'
import type { TestRuntime } from '../../regress/test-runtime.ts'
import type { CommandContext } from '../context.ts'
import type { TestFlags } from '../commands/test.ts'
import { printable } from '../terminal/output.ts'

interface ResultKeeper {
  onRun: NonNullable<RunCasesOptions['onRun']>
  add(result: CaseResult, run: CaseRun): void
  keep(): Promise<void>
}

/** Results in one request: a server takes bodies of 4 MB, unless its config says otherwise. */
const atOnce = 100

export function createResultKeeper(
  context: CommandContext,
  { config, options }: TestRuntime,
  { data = config.record?.data ?? '.millrace', dir, url }: Pick<TestFlags, 'data' | 'dir' | 'url'>,
): ResultKeeper {
  const rows: NewTestResult[] = []
  const runs = new Map<CaseRun, string>()
  const clean = createCleaner([...secretValues(config, context.env), ...(options.secrets ?? [])])
  const folder = realOf(context.path(casesFolder(dir)))

  async function send(): Promise<void> {
    const { createRequest, namedServer } = await import('../connection/server.ts')
    const request = createRequest(await namedServer(context, url!))
    for (let at = 0; at < rows.length; at += atOnce) {
      const body = JSON.stringify({ results: rows.slice(at, at + atOnce) })
      await request('/api/tests/results', { method: 'POST', type: 'application/json', body })
    }
  }

  return {
    onRun({ which, entries, recorded }, run) {
      const [start] = recorded ?? entries
      // The runs of this command are kept nowhere; recorded ones may be.
      if (recorded !== undefined && which.judge !== true && start?.type === 'run-start') runs.set(run, start.runId)
    },
    add(result, run) {
      const id = caseId(folder, realOf(context.path(run.file.path)), run.test)
      // Those of files elsewhere have no place on the page.
      if (id === undefined || result.status === 'stopped') return
      const about = { test: id, agent: run.file.agent, time: Date.now(), user: '', source: 'terminal' as const }
      rows.push(clean(resultRow({ ...about, run: runs.get(run) }, result)))
    },
    async keep() {
      if (rows.length === 0 || (url === undefined && data === 'none')) return
      try {
        if (url === undefined) leaveResults(context.path(data), context.path(dir), rows, Date.now())
        else await send()
      } catch (error) {
        const why = error instanceof MillraceError ? wholeMessage(error) : messageOf(error)
        context.stderr.write(`${printable(`The results are not kept for the page: ${why}`)}\n`)
      }
    },
  }
}

function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
