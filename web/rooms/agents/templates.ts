/** What a new agent may begin with. */
export interface Template {
  id: string
  title: string
  what: string
  /** The YAML. `name` is what people read, `model` such as `openai:gpt-5`. */
  text(name: string, model: string): string
}

const head = (name: string, description: string) => `metadata:
  name: ${JSON.stringify(name)}
  description: ${JSON.stringify(description)}

`

export const templates: readonly Template[] = [
  {
    id: 'chat',
    title: 'Chat',
    what: 'Answers in words',
    text: (name, model) => `${head(name, 'Answers in words')}workflow:
  - id: answer
    type: llm
    config:
      model: ${JSON.stringify(model)}
      stream: true # clients get this step's text, token by token
      system: |
        You are a helpful and concise assistant.
      messages: $input.messages
`,
  },
  {
    id: 'tools',
    title: 'Tools',
    what: 'Calculates, and knows the time',
    text: (name, model) => `${head(name, 'Calculates, and knows the time')}workflow:
  - id: answer
    type: llm
    config:
      model: ${JSON.stringify(model)}
      stream: true
      system: |
        You are a helpful assistant. Use your tools instead of guessing.
      messages: $input.messages
      tools:
        - calculator
        - getCurrentTime
      maxSteps: 5 # model calls for one answer, at most
`,
  },
  {
    id: 'steps',
    title: 'Steps',
    what: 'Writes a draft, then a better answer',
    text: (name, model) => `${head(name, 'Writes a draft, then a better answer')}workflow:
  - id: plan
    type: llm
    config:
      model: ${JSON.stringify(model)}
      system: |
        Write a short draft of the answer.
      messages: $input.messages
    result: draft # later steps read it as $draft

  - id: answer
    type: llm
    config:
      model: ${JSON.stringify(model)}
      stream: true
      system: |
        Answer the user. Make this draft shorter and more exact:
        $draft.text
      messages: $input.messages
`,
  },
  {
    id: 'approval',
    title: 'Approval',
    what: 'Asks a person before it uses a tool',
    text: (name, model) => `${head(name, 'Asks a person before it uses a tool')}workflow:
  - id: answer
    type: llm
    config:
      model: ${JSON.stringify(model)}
      stream: true
      system: |
        You calculate with the tool, never in your head.
      messages: $input.messages
      tools:
        - name: calculator
          approval: true # a person allows or denies every call
`,
  },
]

/** `research-team` for “Research team”: what a file may be called. Empty if nothing is left. */
export function idFor(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/gu, '')
}
