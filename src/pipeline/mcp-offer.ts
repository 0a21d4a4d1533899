/** What an agent offers to MCP clients. */

/** A saved first message. `arguments`: name → what it means; a name that ends in `?` is optional. Each replaces `{name}` in the text. */
export interface SavedPrompt {
  name: string
  description?: string
  arguments?: Record<string, string>
  text: string
}

export interface McpTool {
  /** Whether a call is answered with a task. Default: if the client knows tasks and the run takes long. */
  tasks?: 'never' | 'required'
  /** The tool has a parameter `thread`, and its result names the thread. */
  threads?: boolean
}
