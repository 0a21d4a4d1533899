/** The command line of each CLI agent. The prompt is not among the arguments: all of them read it from stdin. */
import { MillraceError } from '../../part/error.ts'
import type { CliAgentConfig } from '../../pipeline/pipeline.ts'

type Called = Pick<CliAgentConfig, 'cli' | 'command' | 'model' | 'permissionMode' | 'allowedTools' | 'args'>

export function commandOf(config: Called): [string, ...string[]] {
  const [program, ...first] = config.command ?? [config.cli]
  return [program, ...first, ...argumentsOf(config)]
}

function argumentsOf({ cli, model, permissionMode, allowedTools = [], args }: Called): string[] {
  const modelled = model === undefined ? [] : ['--model', model]
  switch (cli) {
    case 'claude':
      return [
        '-p',
        // Takes all arguments up to the next option, so it must not be last.
        ...(allowedTools.length === 0 ? [] : ['--allowedTools', ...allowedTools]),
        '--output-format',
        'stream-json',
        '--verbose',
        '--include-partial-messages',
        ...modelled,
        ...(permissionMode === undefined ? [] : ['--permission-mode', permissionMode]),
        ...args,
      ]
    case 'codex':
      return [
        'exec',
        '--json',
        ...modelled,
        ...(permissionMode === undefined ? [] : ['--sandbox', permissionMode]),
        ...args,
        // The prompt is on stdin.
        '-',
      ]
    case 'gemini':
    case 'qwen':
      return [
        '--output-format',
        'stream-json',
        ...(cli === 'qwen' ? ['--include-partial-messages'] : []),
        ...modelled,
        ...(permissionMode === undefined ? [] : ['--approval-mode', permissionMode]),
        ...(allowedTools.length === 0 ? [] : [`--allowed-tools=${allowedTools.join(',')}`]),
        ...args,
      ]
    default:
      return cli satisfies never
  }
}

/** Checks a model name from a request. Throws `bad-input` for anything that could be read as an option, or is not a name. */
export function toModelName(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  const isName = typeof value === 'string' && value.length > 0 && value.length <= 256 && value.isWellFormed()
  if (isName && !value.startsWith('-') && !/\p{Cc}/u.test(value)) return value
  const what = 'a text of 1 to 256 characters, without control characters and without "-" at its start'
  throw new MillraceError('bad-input', `"model" must be the name of a model: ${what}.`, { status: 400 })
}

/** Display names, and install commands. */
export const clis = {
  claude: { name: 'Claude Code', install: 'npm install -g @anthropic-ai/claude-code' },
  codex: { name: 'Codex', install: 'npm install -g @openai/codex' },
  gemini: { name: 'Gemini CLI', install: 'npm install -g @google/gemini-cli' },
  qwen: { name: 'Qwen Code', install: 'npm install -g @qwen-code/qwen-code' },
} as const
