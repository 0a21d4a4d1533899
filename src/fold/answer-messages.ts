/** The messages that a run adds to the conversation: those of the steps that answer. */
import type { AssistantContent, Message } from '../part/message.ts'
import { jsonOf } from '../part/read-json.ts'
import type { FoldedRun } from './run-fold.ts'
import { textOf } from './run-view.ts'
import { replyMessages, withoutAsides } from './reply-messages.ts'
import type { Reply } from './reply.ts'
import type { ToolLoop } from './tool-loop.ts'

export function answerMessages(fold: FoldedRun): Message[] {
  return answersInOrder(fold).flatMap(({ root, list }) => {
    return replyMessages(fold.objects.has(root) ? toObject(list) : list, 'named')
  })
}

/** Answers of parallel branches in file order, as on wires with a single text; others in the order in which they started. */
function answersInOrder(fold: FoldedRun): ToolLoop[] {
  const { answers, orders } = fold
  const places = new Map(orders.map(([path, names]) => [path, placesIn(names)]))
  const inOrder = (a: string, b: string) => {
    // The names that both paths begin with, from the first on: the branches are those behind them.
    for (let end = a.indexOf('/'); end >= 0; end = a.indexOf('/', end + 1)) {
      if (!b.startsWith(a.slice(0, end + 1))) return 0
      const names = places.get(a.slice(0, end))
      if (names === undefined) continue
      const [first, second] = [a, b].map((path) => names.get(path.slice(end + 1).split('/', 1)[0]!) ?? -1)
      if (first !== second) return first! - second!
    }
    return 0
  }
  const paths = orders.length === 0 ? [...answers] : [...answers].toSorted(inOrder)
  return paths.map((path) => fold.loopAt(path))
}

function placesIn(names: readonly string[]): Map<string, number> {
  const places = new Map<string, number>()
  for (const [i, name] of names.entries()) if (!places.has(name)) places.set(name, i)
  return places
}

/** The replies of a JSON answer as clients see them: the last one has only the JSON. */
function toObject(list: readonly Reply[]): Reply[] {
  return withoutAsides(list).map((reply) => {
    const text = textOf({ role: 'assistant', content: reply.content })
    const json = reply.closed && reply.error === undefined ? jsonOf(text) : ''
    if (json === text) return reply
    const at = reply.content.findIndex(({ type }) => type === 'text')
    const content = reply.content.flatMap((part, i): AssistantContent[] => {
      if (part.type !== 'text') return [part]
      return i === at && json !== '' ? [{ ...part, text: json }] : []
    })
    return { ...reply, content }
  })
}
