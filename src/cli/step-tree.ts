/** The steps of a run as a tree, in the order in which they started. */
import type { CommandContext } from './context.ts'
import { wholeMessage } from '../part/error.ts'
import type { RunView, StepView } from '../fold/run-view.ts'
import { parentPath } from '../part/path.ts'
import { formatDuration, formatTokens } from './amounts.ts'
import { paintStatus } from './style.ts'
import { formatTable } from './table.ts'

export function formatSteps(context: CommandContext, { steps, status }: RunView): string {
  const paths = new Set(steps.map(({ path }) => path))
  // The parent of a step is another step; `main` and `after` are not steps. Nor is the run, whose path is its own parent's.
  const parentOf = (path: string) => (path !== '' && paths.has(parentPath(path)) ? parentPath(path) : undefined)
  const children = Map.groupBy(steps, ({ path }) => parentOf(path))
  const rows: string[][] = []

  function add(list: StepView[], indent: string, under: string | undefined): void {
    for (const [i, step] of list.entries()) {
      const isLast = i === list.length - 1
      // Top-level steps have no branch line.
      const [branch, rest] = under === undefined ? ['', ''] : isLast ? ['└─ ', '   '] : ['├─ ', '│  ']
      const name = under === undefined ? step.path.replace(/^main\//u, '') : step.path.slice(under.length + 1)
      const { stepType, toolName, duration, attempt, usage } = step
      rows.push([
        indent + branch + name,
        toolName === undefined ? stepType : `${stepType} ${toolName}`,
        duration === undefined ? '' : formatDuration(duration),
        formatTokens(usage),
        endOf(step, status) + (attempt > 1 ? ` (attempt ${attempt})` : ''),
      ])
      add(children.get(step.path) ?? [], indent + rest, step.path)
    }
  }
  add(children.get(undefined) ?? [], '', undefined)
  const head = ['STEP', 'TYPE', 'TOOK', 'TOKENS', 'END']
  return formatTable(head, rows, { style: (cell, column) => (column === 4 ? paintStatus(context, cell) : cell) })
}

function endOf({ duration, error, finishReason, answer }: StepView, status: RunView['status']): string {
  if (error !== undefined) return `${error.code}: ${wholeMessage(error)}`
  if (duration === undefined) return status === 'running' || status === 'suspended' ? status : ''
  return [finishReason, answer && 'answer'].filter(Boolean).join(', ')
}
