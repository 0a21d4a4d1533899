/** `millrace test --add`: a recorded run as a test case. */
import type { CommandContext } from '../context.ts'
import type { Entry } from '../../part/entry.ts'
import { MillraceError } from '../../part/error.ts'
import { addCase } from '../../regress/add-case.ts'
import { checkAgentOf, type Lab } from '../../regress/lab.ts'
import type { CaseFile } from '../../regress/test-case.ts'
import { openConnection, type Connection, findRun } from '../connection.ts'
import { agree } from '../foreign-run.ts'
import { printable } from '../printable.ts'
import { casesFolder } from './find-cases.ts'

export interface AddFlags {
  name?: string
  dir: string
  data: string
  url?: string
  store?: string
  trust?: boolean
}

/** The longest conversation that becomes a case. */
const mostTurns = 50

/** Returns the file with the new case only. */
export async function addFromRun(context: CommandContext, lab: Lab, run: string, flags: AddFlags): Promise<CaseFile> {
  const { name, dir } = flags
  const connection = await openConnection(context, flags)
  let logs: Entry[][]
  try {
    const { id, agent } = await findRun(connection, run)
    checkAgentOf(lab, agent, `run ${id}`)
    logs = await readThread(connection, id)
    await agreeToForeign(context, id, logs, lab.agents.get(agent)!.pipeline.text, flags)
  } finally {
    await connection.close()
  }
  const { file, test } = addCase(casesFolder(dir), logs, { name, cwd: context.path('.') })
  context.stderr.write(`${printable(`added to ${file.path}:${test.line}: ${test.name}`)}\n`)
  return file
}

/** Of a stranger's run by an agent that is not the one here. `text`: of the agent here, which the test plays whatever the run says. */
async function agreeToForeign(
  context: CommandContext,
  run: string,
  logs: Entry[][],
  text: string,
  { trust }: AddFlags,
): Promise<void> {
  const isForeign = (log: Entry[]) => log[0]?.type === 'run-start' && log[0].foreign !== undefined
  const foreign = logs.filter((log) => isForeign(log) && textOf(log) !== text)
  if (trust === true || foreign.length === 0) return
  const { programsIn } = await import('../../runtime/foreign-programs.ts')
  const lines = foreign.flatMap((log) => programsIn(log, { ownText: true }))
  await agree(context, run, {
    says: 'A test plays the agent here with what the recording says, and sets nothing of it to work. The recording names:',
    lines,
    question: 'Add it?',
    cure: 'pass --trust',
  })
}

function textOf(log: Entry[]): string | undefined {
  let text: string | undefined
  for (const entry of log) if (entry.type === 'run-start' || entry.type === 'resume') text = entry.pipeline ?? text
  return text
}

/** The run and those before it that its conversation continues, the oldest first. */
async function readThread(connection: Connection, run: string): Promise<Entry[][]> {
  const logs: Entry[][] = []
  const seen = new Set<string>()
  for (let id: string | undefined = run; id !== undefined && !seen.has(id);) {
    seen.add(id)
    if (logs.length === mostTurns)
      throw new MillraceError('bad-run', `The conversation has more than ${mostTurns} runs.`)
    const entries: Entry[] = []
    for await (const entry of connection.read(id, 0, false)) entries.push(entry)
    logs.unshift(entries)
    const start = entries[0]
    id = start?.type === 'run-start' ? start.previousRunId : undefined
  }
  return logs
}
