/** Whether the prompts of a run are those of its recording: if not, the model might say something else today. */
import { equal } from '../part/equal.ts'
import type { Entry, EntryOf } from '../part/entry.ts'
import type { Message, ToolResultContent } from '../part/message.ts'
import { parentPath } from '../part/path.ts'

/** One line for each step whose prompt differs: that of its first call which does. */
export function comparePrompts(recorded: readonly Entry[], now: readonly Entry[]): string[] {
  const before = promptsOf(recorded)
  const lines: string[] = []
  for (const [step, prompts] of promptsOf(now)) {
    // A step with another id plays the calls of the only one that was recorded.
    const old = before.get(step) ?? (before.size === 1 ? [...before.values()][0]! : [])
    const found = prompts.flatMap((prompt, i) => (old[i] === undefined ? [] : (difference(old[i], prompt) ?? [])))[0]
    if (found !== undefined)
      lines.push(`the prompt of ${step.replace(/^main\//u, '')} is not the recorded one: ${found}`)
  }
  return lines
}

function promptsOf(entries: readonly Entry[]): Map<string, EntryOf<'prompt'>[]> {
  const steps = new Map<string, EntryOf<'prompt'>[]>()
  for (const entry of entries) {
    if (entry.type !== 'prompt') continue
    const step = parentPath(entry.step)
    const list = steps.get(step)
    if (list === undefined) steps.set(step, [entry])
    else list.push(entry)
  }
  return steps
}

function difference(old: EntryOf<'prompt'>, now: EntryOf<'prompt'>): string | undefined {
  if (old.model !== now.model) return `the model was ${old.model} and is ${now.model}`
  if ((old.system ?? '') !== (now.system ?? ''))
    return `its system prompt has changed${from(old.system ?? '', now.system ?? '')}`
  if (!equal(anonymous(old.messages), anonymous(now.messages))) return 'its messages have changed'
  return equal(old.tools ?? [], now.tools ?? []) ? undefined : 'its tools have changed'
}

/** Where two texts begin to differ. */
function from(old: string, now: string): string {
  let at = 0
  while (at < old.length && old[at] === now[at]) at++
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 20), at + 40))
  return `, from ${around(old)} to ${around(now)}`
}

/** Without ids and handles, which are those of runs. */
function anonymous(messages: readonly Message[]): unknown {
  return messages.map((message) => {
    const content = message.role === 'tool' ? message.content.map(withoutHandle) : message.content
    return { ...message, content, id: undefined }
  })
}

function withoutHandle(result: ToolResultContent): unknown {
  const { handle, output } = result
  if (handle === undefined) return result
  return { ...result, handle: undefined, output: JSON.stringify(output).replaceAll(handle, 'res') }
}
