/** Files that could not be loaded, each with its mistakes in lines that can be read. */
import type { AgentFault } from '../../data/hooks.ts'

export interface BrokenFile {
  /** `broken.yaml` */
  file: string
  /** What the agent would be called. */
  id: string
  faults: { line: number | undefined; place: string; text: string }[]
}

export function brokenFiles(errors: readonly AgentFault[]): BrokenFile[] {
  return [...Map.groupBy(errors, ({ file }) => file)].map(([file, found]) => ({
    file,
    id: file.replace(/^.*\//u, '').replace(/\.ya?ml$/u, ''),
    faults: found.flatMap(({ message, line }) =>
      message
        .split('\n')
        .filter((each) => each.trim() !== '')
        .map((each) => faultOf(file, each, line)),
    ),
  }))
}

/** Without the name of the file, which stands beside it. */
function faultOf(file: string, message: string, line: number | undefined): BrokenFile['faults'][number] {
  const text = message.startsWith(`${file}:`) ? message.slice(file.length + 1).trimStart() : message.trim()
  const [, row, column, rest] = /^(\d+):(\d+):? (.+)$/su.exec(text) ?? []
  if (row === undefined) return { line, place: line === undefined ? '' : String(line), text: shorter(text) }
  return { line: Number(row), place: `${row}:${column}`, text: shorter(rest!) }
}

/** A list of all that there is would fill a screen: the editor has it. */
function shorter(text: string): string {
  return text.replaceAll(/; known ([^:;]+): ([^;]+)/gu, (all: string, what: string, names: string) => {
    const list = names.split(', ')
    return list.length <= mostKnown
      ? all
      : `; known ${what}: ${list.slice(0, mostKnown).join(', ')} and ${list.length - mostKnown} more`
  })
}

const mostKnown = 4
