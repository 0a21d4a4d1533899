/** The typed config of a `cli-agent` step. */
export interface CliAgentConfig {
  cli: 'claude' | 'codex' | 'gemini' | 'qwen'
  /** The program and its first arguments. Default: the name of the CLI. */
  command?: [program: string, ...args: string[]]
  /** Text with references, or a reference to text or messages. */
  prompt: string
  /** Begins with the folder that it must not leave. */
  cwd: string
  model?: string
  permissionMode?: string
  allowedTools?: string[]
  /** Names of environment variables; one that ends in `?` may be unset. */
  env: string[]
  args: string[]
  rawLog: boolean
  /** Whether it is the answer. Default: true if it is the last step. */
  stream?: boolean
  onStreamPart?: string
  onProgress?: string
  onToolCall?: string
}
