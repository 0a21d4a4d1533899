/** The view of an agent's file on the page: its text, its steps as a drawing, and its mistakes. */

/** A step of the file, with the lists of steps in it. */
export interface TreeStep {
  id: string
  type: string
  /** Of the file, from 1. */
  line: number
  /** The name of the variable that holds its value. */
  result?: string
  model?: string
  tools?: string[]
  /** The agent that it calls; a reference if it is chosen at run time. */
  agent?: string
  /** The MCP server and the tool that it calls, or the CLI that it starts. */
  runs?: string
  /** At most so many rounds. */
  max?: number
  /** `then` and `else`, the steps of a loop, the branches of `parallel` by their names. */
  lists?: { name: string; steps: TreeStep[] }[]
}

export interface AgentTree {
  workflow: TreeStep[]
  after: TreeStep[]
}

/** A mistake with its place; lines and columns count from 1. */
export interface AgentFault {
  line: number
  column: number
  message: string
  /** Set on the last one of too many: how many more places have mistakes. */
  more?: number
  /** A word to put in place of another one. */
  fix?: { line: number; column: number; length: number; text: string }
}

/** The agent of a text. `tree`: absent while it has mistakes that nobody can draw. */
export interface AgentCheck {
  faults: AgentFault[]
  tree?: AgentTree
}
