/** The messages that a run adds to the conversation: those of the steps that answer. */
import type { AssistantContent, Message } from '../part/message.ts'
import { isUnder } from '../part/path.ts'
import { jsonOf } from '../part/read-json.ts'
import type { FoldedRun } from './run-fold.ts'
import { textOf } from './run-view.ts'
import { replyMessages, withoutAsides } from './reply-messages.ts'
import type { Reply } from './reply.ts'
import type { ToolLoop } from './tool-loop.ts'

export function answerMessages(fold: FoldedRun): Message[] {
  return answersInOrder(fold).flatMap(({ root, list }) => {
    return replyMessages(fold.objects.has(root) ? toObject(list) : list)
  })
}

/** Answers of parallel branches in file order, as on wires with a single text; others in the order in which they started. */
function answersInOrder(fold: FoldedRun): ToolLoop[] {
  const { answers, orders } = fold
  const inOrder = (a: string, b: string) => {
    for (const [path, names] of orders) {
      if (!isUnder(a, path) || !isUnder(b, path)) continue
      const place = (root: string) => names.indexOf(root.slice(path.length + 1).split('/')[0]!)
      if (place(a) !== place(b)) return place(a) - place(b)
    }
    return 0
  }
  const paths = orders.length === 0 ? [...answers] : [...answers].toSorted(inOrder)
  return paths.map((path) => fold.loopAt(path))
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
