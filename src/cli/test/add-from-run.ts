/** `millrace test --add`: a recorded run as a test case. */
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { addCase } from '../../regress/add-case.ts'
import { checkAgentOf, type Lab } from '../../regress/lab.ts'
import type { CaseFile } from '../../regress/test-case.ts'
import { openAccess, type Access } from '../access.ts'
import { findRun } from '../find-run.ts'
import { printable } from '../printable.ts'
import { casesFolder } from './find-cases.ts'

export interface AddFlags {
  name?: string
  dir: string
  data: string
  url?: string
  store?: string
}

/** The longest conversation that becomes a case. */
const mostTurns = 50

/** Returns the file with the new case only. */
export async function addFromRun(lab: Lab, run: string, flags: AddFlags): Promise<CaseFile> {
  const { name, dir } = flags
  const access = await openAccess(flags)
  let logs: Entry[][]
  try {
    const { id, agent } = await findRun(access, run)
    checkAgentOf(lab, agent, `run ${id}`)
    logs = await readThread(access, id)
  } finally {
    await access.close()
  }
  const { file, test } = addCase(casesFolder(dir), logs, name)
  process.stderr.write(`${printable(`added to ${file.path}:${test.line}: ${test.name}`)}\n`)
  return file
}

/** The run and those before it that its conversation continues, the oldest first. */
async function readThread(access: Access, run: string): Promise<Entry[][]> {
  const logs: Entry[][] = []
  const seen = new Set<string>()
  for (let id: string | undefined = run; id !== undefined && !seen.has(id);) {
    seen.add(id)
    if (logs.length === mostTurns)
      throw new MillraceError('bad-run', `The conversation has more than ${mostTurns} runs.`)
    const entries: Entry[] = []
    for await (const entry of access.read(id, 0, false)) entries.push(entry)
    logs.unshift(entries)
    const start = entries[0]
    id = start?.type === 'run-start' ? start.previousRunId : undefined
  }
  return logs
}
