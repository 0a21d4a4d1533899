/** One line for each tool call and each result, shown in a chat. */
import type { CommandContext, Output } from './context.ts'
import type { Entry } from '../part/entry.ts'
import { printable } from './printable.ts'
import { paint } from './style.ts'
import { cut } from './width.ts'

export function createToolLines(context: CommandContext, stream: Output = context.stderr) {
  const line = (text: string) => {
    const flat = printable(text.replaceAll(/[\n\r\t]+/gu, ' '))
    return paint(context, 'dim', cut(flat, (stream.isTTY && stream.columns) || 160), stream)
  }
  return {
    apply(entry: Entry): string | undefined {
      if (entry.type === 'tool-call') return line(`→ ${entry.toolName} ${entry.input}`)
      if (entry.type !== 'tool-result' || entry.preliminary === true) return undefined
      const { toolName, result, isError } = entry
      const text = typeof result === 'string' ? result : JSON.stringify(result)
      return line(`← ${toolName}${isError === true ? ' failed:' : ''} ${text}`)
    },
  }
}
