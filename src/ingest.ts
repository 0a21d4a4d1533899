/** `millrace/ingest`: the output of CLI agents, as parts. Browser-safe. */
export { cliNames, type CliName } from './ingest/cli-names.ts'
export {
  createClaudeParser,
  createCliParser,
  createCliReader,
  createCodexParser,
  createGeminiParser,
  createQwenParser,
  type CliParser,
} from './ingest/cli-parser.ts'
export type { CliExit, CliOutcome } from './ingest/outcome.ts'
export type { CliParserOptions, CliReader, CliReaderOptions } from './ingest/transcript.ts'
export { detectFormat } from './ingest/detect.ts'
