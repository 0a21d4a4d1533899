import type { Command } from 'commander'
import type { CommandContext } from '../context.ts'
import { complete } from '../complete.ts'
import { completionScripts, type Shell } from '../completion-scripts.ts'
import { printable } from '../printable.ts'

export function completionCommand(context: CommandContext, shell: Shell): void {
  context.stdout.write(completionScripts[shell])
}

/** Called by the scripts: prints lines of `word<Tab>description`, then `:files` if file names may follow as well. */
export async function completeCommand(
  context: CommandContext,
  program: Command,
  words: readonly string[],
): Promise<void> {
  const { words: found, files } = await complete(context, program, words)
  const lines = found.map(({ word, about }) => `${oneLine(word)}\t${printable(oneLine(about))}`)
  context.stdout.write([...lines, ...(files ? [':files'] : [])].map((line) => `${line}\n`).join(''))
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/gu, ' ').trim()
}
