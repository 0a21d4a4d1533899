export const stepKinds = [
  /** One call of a model. */
  'model-call',
  /** The server runs a tool. */
  'tool-call',
  /** A client is asked to run a tool. */
  'client-tool',
  /** A client is asked to approve a tool call. */
  'approval',
  /** Model calls and their tool calls, until the model answers. */
  'tool-loop',
  /** The same, until the model hands over to a later step: its text is not the answer. */
  'router',
  /** The older part of a loop's conversation is put into fewer words, because it fills the model's window. */
  'summary',
  /** Branches that run at the same time. */
  'parallel',
  /** Any other step that contains steps, and each list of steps in it. */
  'container',
  /** Code in a sandbox, with the calls that it makes. */
  'script',
  /** Stores facts and finds them again. */
  'memory',
  /** Any other built-in step. */
  'task',
  /** Code of the program. */
  'custom',
] as const

/** The kind of a step, whatever its type is called: a program may give its own types any name. */
export type StepKind = (typeof stepKinds)[number]

/** The kinds of the step types that logs without kinds have. */
const kindsOfTypes: ReadonlyMap<string, StepKind> = new Map([
  ['model-call', 'model-call'],
  ['tool-call', 'tool-call'],
  ['client-tool', 'client-tool'],
  ['approval', 'approval'],
  ['llm', 'tool-loop'],
  ['router', 'router'],
  ['parallel', 'parallel'],
  ['loop', 'container'],
  ['condition', 'container'],
  ['call-agent', 'container'],
  ['branch', 'container'],
  ['round', 'container'],
  ['memory', 'memory'],
  ['output-generator', 'task'],
  ['mcp-tool', 'task'],
])

/** The kind of a step. Older logs have only its type, so one that a program has named `model-call` is told by its path. */
export function kindOf(start: { kind?: StepKind; stepType: string; step: string; toolCallId?: string }): StepKind {
  if (start.kind !== undefined) return start.kind
  const kind = kindsOfTypes.get(start.stepType) ?? 'custom'
  const isCall = kind === 'tool-call' || kind === 'client-tool' || kind === 'approval'
  if (isCall && start.toolCallId === undefined) return 'custom'
  return kind === 'model-call' && !/\/\d+$/u.test(start.step) ? 'custom' : kind
}
