/** `millrace parse`: turns the output of a CLI agent into parts. */
import type { Command } from 'commander'
import { cliNames, type CliName } from '../../ingest/cli-names.ts'
import type { CommandContext } from '../context.ts'
import { choice, examples } from './options.ts'

export interface ParseFlags {
  from?: CliName
}

export function addParseCommand(context: CommandContext, program: Command): void {
  program
    .command('parse')
    .summary("Turn a CLI agent's output into parts")
    .description(
      'Read the output of Claude Code, Codex, Gemini CLI or Qwen Code, and print it as parts, one JSON object per line, while it is written.',
    )
    .argument('[file]', 'File with the output; - or nothing for stdin')
    .addOption(choice('--from <cli>', 'The CLI that wrote it (default: what its first lines tell)', cliNames))
    .addHelpText(
      'after',
      `
That of other CLI agents (Droid, Copilot, OpenCode, Pi, Cline, Kimi …) is refused
by name. Lines that are no events become cli-output parts. The last part is always
finish; if the CLI did not end with a result, an error comes before it.

Exit codes: 0 the output was read, whatever it says; 1 it is not the output of a
CLI agent (session files look alike), 2 wrong usage, 130 stopped with Ctrl-C.
${examples(
  'claude -p "Hi" --output-format stream-json --verbose | millrace parse | jq .type',
  'codex exec --json "Fix the tests" | millrace parse --from codex',
  'millrace parse gemini-output.jsonl',
)}`,
    )
    .action(async (file: string | undefined, flags: ParseFlags) =>
      (await import('../import/parse.ts')).parseOutput(context, file, flags),
    )
}
