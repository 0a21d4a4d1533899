/**
 * What Claude Code does in the background: commands and agents that outlive the turn that has started them. When one ends, another turn
 * may begin, behind a result.
 */
import { objectOf, objectsOf, textOf } from '../values.ts'

export interface Tasks {
  /** A `system` line. */
  note(line: Record<string, unknown>): void
  readonly areOpen: boolean
}

/** Tasks that are remembered. */
const mostTasks = 1000

export function createTasks(): Tasks {
  let open = new Set<string>()
  return {
    note(line) {
      const id = textOf(line['task_id']) ?? ''
      switch (line['subtype']) {
        case 'task_started':
          if (open.size < mostTasks) open.add(id)
          return
        case 'task_notification':
          open.delete(id)
          return
        case 'task_updated':
          if (ended.has(objectOf(line['patch'])['status'])) open.delete(id)
          return
        case 'background_tasks_changed': {
          const tasks = objectsOf(line['tasks']).filter(({ status }) => !ended.has(status))
          open = new Set(
            tasks.slice(0, mostTasks).map((task, i) => textOf(task['task_id']) ?? textOf(task['id']) ?? `${i}`),
          )
          return
        }
        default:
      }
    },
    get areOpen() {
      return open.size > 0
    },
  }
}

const ended: ReadonlySet<unknown> = new Set(['completed', 'failed', 'killed', 'stopped', 'cancelled'])
