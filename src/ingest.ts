/** `millrace/ingest`: what CLI agents print, as parts. Browser-safe. */
export {
  cliNames,
  createClaudeParser,
  createCliParser,
  createCliReader,
  createCodexParser,
  createGeminiParser,
  type CliName,
  type CliParser,
} from './ingest/cli-parser.ts'
export type { CliExit, CliOutcome } from './ingest/outcome.ts'
export type { CliParserOptions, CliReader, CliReaderOptions } from './ingest/transcript.ts'
