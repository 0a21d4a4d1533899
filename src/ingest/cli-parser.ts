/**
 * Parsers of the output of CLI agents: Claude Code, Codex, Gemini CLI and Qwen Code. Pure functions from bytes to parts, the same parts however the
 * bytes are cut. They run in a browser as well, and start no program.
 */
import { MillraceError } from '../part/error.ts'
import type { SourcePart } from '../part/part.ts'
import { cliNames, type CliName } from './cli-names.ts'
import { createClaudeDialect } from './claude/claude-dialect.ts'
import { createCodexDialect } from './codex/codex-dialect.ts'
import { createGeminiDialect } from './gemini/gemini-dialect.ts'
import { createQwenDialect } from './qwen/qwen-dialect.ts'
import type { CliExit, CliOutcome } from './outcome.ts'
import {
  createTranscript,
  type CliParserOptions,
  type CliReader,
  type CliReaderOptions,
  type CreateDialect,
} from './transcript.ts'

/** An incremental parser; see {@link createCliParser}. */
export interface CliParser {
  /** Returns the parts of the lines that this chunk completes. Chunks may be cut anywhere. */
  feed(bytes: Uint8Array | string): SourcePart[]
  /**
   * Reads the last line, closes open blocks, and returns the last parts: an `error` unless it completed, then the one `finish`. Leave
   * `exit` out if the process was not waited for, or if there is none.
   */
  end(exit?: CliExit): SourcePart[]
  /** Whether the CLI has said its result. Nothing more is to be expected, even if the process does not exit. */
  readonly isDone: boolean
  /** The outcome. Throws before {@link CliParser.end}. */
  outcome(): CliOutcome
  /** The user's prompt, if the output repeats it. */
  readonly prompt: string | undefined
}

const dialects: Record<CliName, CreateDialect> = {
  claude: createClaudeDialect,
  codex: createCodexDialect,
  gemini: createGeminiDialect,
  qwen: createQwenDialect,
}

/** Creates a parser for the output of a CLI agent: one JSON object per line. Lines that are no events become `cli-output` parts. */
export function createCliParser(cli: CliName, options: CliParserOptions = {}): CliParser {
  let parts: SourcePart[] = []
  const reader = createCliReader(cli, { ...options, onPart: (part) => parts.push(part) })
  const taken = () => {
    const all = parts
    parts = []
    return all
  }
  return {
    feed(bytes) {
      reader.feed(bytes)
      return taken()
    },
    end(exit) {
      reader.end(exit)
      return taken()
    },
    get isDone() {
      return reader.isDone
    },
    outcome: () => reader.outcome(),
    get prompt() {
      return reader.prompt
    },
  }
}

/** The same, with callbacks: for a reader that wants the times of the lines, or each part without an array. */
export function createCliReader(cli: CliName, options: CliReaderOptions): CliReader {
  if (!Object.hasOwn(dialects, cli)) {
    throw new MillraceError('bad-cli', `There is no parser for ${JSON.stringify(cli)}. Known: ${cliNames.join(', ')}.`)
  }
  return createTranscript(cli, dialects[cli], options)
}

/** A parser for `claude -p --output-format stream-json --verbose`, with or without `--include-partial-messages`. */
export function createClaudeParser(options?: CliParserOptions): CliParser {
  return createCliParser('claude', options)
}

/** A parser for `codex exec --json`. */
export function createCodexParser(options?: CliParserOptions): CliParser {
  return createCliParser('codex', options)
}

/** A parser for `gemini -p … --output-format stream-json`. */
export function createGeminiParser(options?: CliParserOptions): CliParser {
  return createCliParser('gemini', options)
}

/** A parser for `qwen -p … --output-format stream-json`, with or without `--include-partial-messages`. */
export function createQwenParser(options?: CliParserOptions): CliParser {
  return createCliParser('qwen', options)
}
