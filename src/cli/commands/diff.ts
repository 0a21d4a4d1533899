/** `millrace diff`: the first difference of two runs, and both side by side. Exits like `diff`: 0 for equal runs, else 1. */
import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import type { Divergence, RunDiff } from '../../record/diff/diff.ts'
import type { RunDigest } from '../../record/diff/digest.ts'
import { openConnection, type ConnectionFlags, findRun, recordingOf } from '../connection.ts'
import { forStream, printable, paint } from '../terminal/output.ts'
import { formatTable, cut } from '../terminal/table.ts'
import { addConnectionOptions, examples, runAbout } from './options.ts'

export function addDiffCommand(context: CommandContext, program: Command): void {
  const command = program
    .command('diff')
    .summary('Compare two runs')
    .description('Print where two runs part, and side by side what each came to.')
    .argument('<a>', runAbout)
    .argument('<b>', runAbout)
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      `
Ids, times and durations are not compared. Exit codes: 0 the runs say the same, 1
they do not.
${examples('millrace diff run_1a2b3c run_4d5e6f')}`,
    )
    .action((a: string, b: string, flags: ConnectionFlags & { json?: boolean }) => compareRuns(context, a, b, flags))
  addConnectionOptions(command)
}

async function compareRuns(
  context: CommandContext,
  a: string,
  b: string,
  { json = false, ...where }: ConnectionFlags & { json?: boolean },
) {
  const { diffRuns } = await import('../../record/diff/diff.ts')
  const connection = await openConnection(context, where)
  try {
    const [left, right] = [await findRun(connection, a), await findRun(connection, b)]
    const found = await diffRuns(recordingOf(connection, left.id), recordingOf(connection, right.id))
    const { stdout } = context
    stdout.write(json ? forStream(`${JSON.stringify(found, null, 2)}\n`, stdout) : `${toText(context, found)}\n`)
    context.exitCode = found.same ? 0 : 1
  } finally {
    await connection.close()
  }
}

function toText(context: CommandContext, { same, divergence, a, b }: RunDiff): string {
  if (same) return printable(`${a.id} and ${b.id} say the same: ${a.entries} entries, ${a.outcome}`)
  return [divergence && firstOf(context, divergence), '', sideBySide(context, a, b)].join('\n')
}

function firstOf(context: CommandContext, { a, b, fields }: Divergence): string {
  const seq = (a ?? b)!.seq
  const what =
    fields.length === 0 ? 'one of them ends here' : `${fields.join(', ')} ${fields.length === 1 ? 'differs' : 'differ'}`
  const line = (mark: string, entry: Divergence['a']) => {
    if (entry === undefined) return `${mark} (no entry)`
    const { seq: _, timestamp: __, ...rest } = entry
    return printable(cut(`${mark} ${JSON.stringify(rest)}`, 200))
  }
  return [`They part at entry ${seq}: ${what}.`, removed(context, line('-', a)), added(context, line('+', b))].join(
    '\n',
  )
}

function removed(context: CommandContext, text: string): string {
  return paint(context, 'red', text, context.stdout)
}

function added(context: CommandContext, text: string): string {
  return paint(context, 'green', text, context.stdout)
}

/** Rows that differ are marked. */
function sideBySide(context: CommandContext, a: RunDigest, b: RunDigest): string {
  const width = Math.max(30, Math.floor(((context.stdout.columns || 120) - 16) / 2))
  const rows: string[][] = []
  const add = (name: string, x: string, y: string) => {
    const marks = x === y ? ' ' : '≠'
    const lines = [x.split('\n'), y.split('\n')] as const
    for (let i = 0; i < Math.max(lines[0].length, lines[1].length); i++) {
      rows.push([i === 0 ? `${marks} ${name}` : '', cut(lines[0][i] ?? '', width), cut(lines[1][i] ?? '', width)])
    }
  }
  add('agent', a.agent, b.agent)
  add('outcome', [a.outcome, a.error].filter(Boolean).join(': '), [b.outcome, b.error].filter(Boolean).join(': '))
  add('text', a.text, b.text)
  add('tools', toolsOf(a), toolsOf(b))
  add('steps', a.steps.join('\n'), b.steps.join('\n'))
  add('model calls', String(a.modelCalls), String(b.modelCalls))
  add('tokens', String(a.usage?.totalTokens ?? '-'), String(b.usage?.totalTokens ?? '-'))
  add('cost', a.cost === undefined ? 'unknown' : `$${a.cost}`, b.cost === undefined ? 'unknown' : `$${b.cost}`)
  add('duration', durationOf(a), durationOf(b))
  return formatTable(['', a.id, b.id], rows)
}

/** Of a fork: from when it was forked, and beside it what it has taken over. */
function durationOf({ duration, takenOver }: RunDigest): string {
  return !takenOver ? `${duration} ms` : `${duration} ms (+${takenOver} ms taken over)`
}

function toolsOf({ tools }: RunDigest): string {
  return tools
    .map(
      ({ name, input, output, isError }) => `${name}(${input}) ${isError === true ? '✗' : '→'} ${output ?? '(none)'}`,
    )
    .join('\n')
}
