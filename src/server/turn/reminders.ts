/**
 * What a coding CLI adds to a conversation by itself, and has in another form, or not at all, when it sends the conversation again: texts in
 * `<system-reminder>`, and the message that asks to go on after an answer that was cut off.
 */
import type { FileContent, Message, TextContent } from '../../part/message.ts'
import { textOf } from '../../fold/run-view.ts'
import type { SentMessage } from '../../wire/sent-message.ts'

type UserContent = readonly (TextContent | FileContent)[]

/** The content without reminders, or all of it if it has nothing else. */
export function withoutReminders(content: string | UserContent): string | UserContent {
  if (typeof content === 'string') return content
  const said = content.filter((part) => !isReminder(part))
  return said.length === 0 ? content : said
}

function isReminder(part: TextContent | FileContent): boolean {
  return part.type === 'text' && /^\s*<system-reminder>.*<\/system-reminder>\s*$/su.test(part.text)
}

/** A message of the user in which only the CLI speaks. */
export function isOnlyReminder({ role, content }: Message): boolean {
  if (role !== 'user' || content.length === 0) return false
  return typeof content === 'string' ? isReminder({ type: 'text', text: content }) : content.every(isReminder)
}

/**
 * Without the beginnings of answers that were cut off, and what the CLI asked then, where the whole answer follows: it has joined the run. The log
 * has only the whole.
 */
export function withoutCuts(sent: readonly SentMessage[]): SentMessage[] {
  const kept: SentMessage[] = []
  for (const each of sent) {
    kept.push(each)
    const [cut, asked] = kept.slice(-3)
    if (kept.length < 3 || each.message.role !== 'assistant' || cut!.message.role !== 'assistant') continue
    if (!isOnlyReminder(asked!.message) || !isText(cut!.message)) continue
    if (textOf(each.message).startsWith(textOf(cut!.message))) kept.splice(-3, 2)
  }
  return kept
}

function isText({ content }: Message): boolean {
  return typeof content === 'string' || content.every(({ type }) => type === 'text')
}
