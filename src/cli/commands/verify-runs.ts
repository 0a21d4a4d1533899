/** `millrace verify`: checks recordings against the grammar. Prints a few errors for each: one causes the next. */
import { createReadStream, existsSync, statSync } from 'node:fs'
import type { CommandContext } from '../context.ts'
import { omitUndefined } from '../../part/omit-undefined.ts'
import type { Entry } from '../../part/entry.ts'
import { MillraceError, wholeMessage } from '../../part/error.ts'
import { createGrammar } from '../../fold/grammar.ts'
import { hasEnded, type RunRow } from '../../part/log.ts'
import { createNdjsonReader } from '../../store/ndjson.ts'
import { unreadableRow } from '../../store/store-error.ts'
import { openConnection, type Connection, type ConnectionFlags, findRun } from '../connection.ts'
import { printable } from '../terminal/output.ts'
import { createProgress } from '../terminal/progress.ts'

const maxFaults = 5

/** The result for one recording. */
interface Findings {
  entries: number
  /** Only the printed ones. */
  faults: number
  /** The check stopped early: there are more. */
  hasMore: boolean
}

export async function verifyRecordings(context: CommandContext, what: string, where: ConnectionFlags): Promise<void> {
  const found: Findings[] = []
  let open = 0
  const lines = createLines(context, what === 'all')
  // `all` is a keyword: a file of that name is `./all`.
  if (what !== 'all' && existsSync(context.path(what))) {
    found.push(await verifyFile(context, what))
    if (found[0]!.entries === 0) context.stderr.write(`${expected}\n`)
  } else {
    if (/[./\\]/u.test(what)) throw new MillraceError('usage', `There is no file ${what}.`)
    const connection = await openConnection(context, where)
    try {
      const of = what === 'all' && context.stderr.isTTY === true ? await countRuns(connection) : 1
      for await (const run of what === 'all' ? everyRun(connection) : [await findRun(connection, what)]) {
        const { findings, isOpen } = await verifyRun(context, connection, run, lines)
        found.push(findings)
        if (isOpen) open++
        lines.tell(found.length, Math.max(of, found.length))
      }
    } finally {
      lines.flush()
      await connection.close()
    }
  }
  const faults = found.reduce((sum, each) => sum + each.faults, 0)
  const more = found.some(({ hasMore }) => hasMore) ? ' and more' : ''
  const facts = [`${found.length} checked`, `${faults} ${faults === 1 ? 'error' : 'errors'}${more}`]
  if (open > 0) facts.push(`${open} not ended`)
  context.stderr.write(`${facts.join(', ')}\n`)
  context.exitCode = faults > 0 ? 1 : 0
}

const expected =
  'expected a recording with one entry per line, such as {"seq":1,"timestamp":1705584896150,"step":"","type":"run-start",…}. ' +
  'Write one with millrace run … --format parts or millrace logs <run> --json.'

async function verifyFile(context: CommandContext, file: string): Promise<Findings> {
  if (statSync(context.path(file)).isDirectory()) throw new MillraceError('usage', `${file} is a folder. Pass a file.`)
  const { findings, check, report } = createCheck(context, file)
  const reader = createNdjsonReader()
  let reported = 0
  const checkEntries = (entries: Entry[]) => {
    entries.forEach(check.entry)
    for (const { line, message } of reader.faults.slice(reported)) report(message, `:${line}`)
    reported = reader.faults.length
  }
  for await (const chunk of createReadStream(context.path(file), 'utf8')) {
    // Line by line, to print errors in the order of the file.
    for (const piece of String(chunk).split(/(?<=\n)/u)) if (!findings.hasMore) checkEntries(reader.feed(piece))
    if (findings.hasMore) break
  }
  checkEntries(reader.end())
  check.end(false)
  context.stderr.write(`${printable(file)}: ${findings.entries} entries\n`)
  return findings
}

/** A run without an end is not an error: it may be going on, or its process is gone and no server has ended it yet. */
async function verifyRun(
  context: CommandContext,
  connection: Connection,
  run: RunRow,
  lines: Lines,
): Promise<{ findings: Findings; isOpen: boolean }> {
  const { findings, check, report } = createCheck(context, run.id, () => lines.flush())
  const isOpen = !hasEnded(run.status)
  let isEnded = false
  if (run.error?.code === unreadableRow) report(run.error.message)
  try {
    for await (const entry of connection.read(run.id, 0, false)) {
      check.entry(entry)
      isEnded = entry.type === 'run-end'
      if (findings.hasMore) break
    }
    check.end(isOpen)
  } catch (error) {
    // The other runs are checked all the same.
    report(`cannot be read: ${wholeMessage(error as Error)}`)
  }
  const outcome = isEnded ? undefined : await connection.orphanOutcome(run)
  const state = isEnded || !isOpen ? '' : `, not ended${outcome === undefined ? ` (${run.status})` : ' (no server)'}`
  lines.add(printable(`${run.id}: ${findings.entries} entries${state}\n`), state !== '' || findings.faults > 0)
  return { findings, isOpen: state !== '' }
}

interface Lines {
  /** `matters`: a person reads it even among thousands. */
  add(line: string, matters: boolean): void
  tell(done: number, of: number): void
  flush(): void
}

/** Characters of lines that are written together: a write for each run would take a good part of the time. */
const mostHeld = 16 * 1024

/** On a terminal, of all runs only those that matter have a line, above the progress. */
function createLines({ stderr }: CommandContext, isAll: boolean): Lines {
  const progress = createProgress(stderr, 'runs')
  const isShort = isAll && stderr.isTTY === true
  let held = ''
  let toldAt = 0
  const flush = () => {
    progress.clear()
    if (held !== '') stderr.write(held)
    held = ''
  }
  return {
    add(line, matters) {
      if (isShort && !matters) return
      held += line
      if (!isAll || isShort || held.length >= mostHeld) flush()
    },
    tell(done, of) {
      if (!isShort || (done < of && performance.now() - toldAt < 100)) return
      toldAt = performance.now()
      progress.tell(done, of)
    },
    flush,
  }
}

/** `before`: called before a fault is written. */
function createCheck(context: CommandContext, name: string, before: () => void = () => undefined) {
  const grammar = createGrammar()
  const findings: Findings = { entries: 0, faults: 0, hasMore: false }

  function report(fault: string | undefined, place = ''): void {
    if (fault === undefined || findings.hasMore) return
    findings.hasMore = findings.faults === maxFaults
    if (!findings.hasMore) findings.faults++
    before()
    context.stdout.write(`${printable(findings.hasMore ? '… and more' : `${name}${place}: ${fault}`)}\n`)
  }
  return {
    findings,
    report,
    check: {
      entry(entry: Entry) {
        findings.entries++
        report(grammar.check(entry))
      },
      end: (mayBeOpen: boolean) => report(grammar.end({ open: mayBeOpen })),
    },
  }
}

/** Runs in a page of a list. */
const page = 1000

async function* everyRun(connection: Connection): AsyncGenerator<RunRow> {
  let before: string | undefined
  for (;;) {
    const rows = await connection.list(omitUndefined({ limit: page, before }))
    yield* rows
    if (rows.length < page) return
    before = rows.at(-1)!.id
  }
}

async function countRuns(connection: Connection): Promise<number> {
  let count = 0
  for await (const _ of everyRun(connection)) count++
  return count
}
