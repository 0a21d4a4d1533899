/** The messages that a run adds to the conversation: those of the steps that answer. */
import type { AssistantContent, Message } from '../part/message.ts'
import { isUnder } from '../part/path.ts'
import { jsonOf } from '../part/read-json.ts'
import type { FoldedRun } from './run-fold.ts'
import { textOf } from './run-view.ts'
import { turnMessages, withoutAsides } from './turn-messages.ts'
import type { Turn, Turns } from './turns.ts'

export function answerMessages(fold: FoldedRun): Message[] {
  return answersInOrder(fold).flatMap(({ root, list }) => {
    return turnMessages(fold.objects.has(root) ? toObject(list) : list)
  })
}

/** Answers of parallel branches in file order, as on wires with a single text; others in the order in which they started. */
function answersInOrder({ answers, orders, turns }: FoldedRun): Turns[] {
  const inOrder = (a: string, b: string) => {
    for (const [path, names] of orders) {
      if (!isUnder(a, path) || !isUnder(b, path)) continue
      const place = (root: string) => names.indexOf(root.slice(path.length + 1).split('/')[0]!)
      if (place(a) !== place(b)) return place(a) - place(b)
    }
    return 0
  }
  return (orders.length === 0 ? [...answers] : [...answers].toSorted(inOrder)).map(turns)
}

/** The turns of a JSON answer as clients see them: the last one has only the JSON. */
function toObject(list: readonly Turn[]): Turn[] {
  return withoutAsides(list).map((turn) => {
    const text = textOf({ role: 'assistant', content: turn.content })
    const json = turn.closed && turn.error === undefined ? jsonOf(text) : ''
    if (json === text) return turn
    const at = turn.content.findIndex(({ type }) => type === 'text')
    const content = turn.content.flatMap((part, i): AssistantContent[] => {
      if (part.type !== 'text') return [part]
      return i === at && json !== '' ? [{ ...part, text: json }] : []
    })
    return { ...turn, content }
  })
}
