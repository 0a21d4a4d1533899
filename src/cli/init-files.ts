/** The files of `millrace init`. The agent runs without a key; the config works before anything is installed. */
import { schemaFile } from './editor-schema.ts'

export const agentText = `# yaml-language-server: $schema=./${schemaFile}
#
# An agent is one YAML file. This one runs without an API key. The first line gives your editor completion and checks.
#
#   millrace run assistant -m "What is 12*7?"     print one answer
#   millrace chat assistant                       chat on the terminal
#   millrace serve                                serve it over HTTP; changes to this file are picked up at once
#   millrace check                                check it for errors
#   millrace test --add <run>                     make a test case of a recorded run; millrace test runs them all

metadata:
  name: "Assistant"
  version: "1.0.0"
  description: "Answers in words, calculates, and knows the time"

# Steps run from top to bottom. The step with \`stream: true\` is the answer: clients receive it token by token.
workflow:
  - id: answer
    type: llm # calls a model, and runs the tools it asks for
    config:
      # The built-in offline model. With an API key in the environment or in .env, use "gemini-2.5-flash", "openai:gpt-5" or
      # "anthropic:claude-sonnet-4-5". For a local server, pass --endpoint ollama=http://localhost:11434/v1 and use "ollama:llama3.2".
      model: "demo:assistant"
      stream: true
      system: "You are a helpful and concise assistant."
      # \`$input\` is the client's request; \`$input.messages\` is the conversation so far.
      messages: "$input.messages"
      # Tools that the model may call. Register your own in the config file beside this one.
      tools:
        - name: calculator
        - name: getCurrentTime
      maxSteps: 5 # maximum number of model calls for one answer
      # onFinish: logAnswer # uncomment to call this callback of the config file after each answer
`

export const configText = `// Adds tools, callbacks, step types, models and prices that agents can use by name. Node runs this file directly.
// \`npm install millrace\` adds the types; the file works without it.
import type { Config } from 'millrace'

export default {
  callbacks: {
    // Use it in an agent: \`onFinish: logAnswer\`.
    logAnswer: ({ text, totalUsage }) => console.error(\`answered \${text.length} characters, \${totalUsage.totalTokens} tokens\`),
  },
  tools: {
    // A custom tool. To enable it, run \`npm install millrace zod\`, add \`import { z } from 'zod'\` above, and uncomment it.
    // Use it in an agent: \`tools: [orderStatus]\`.
    //
    // orderStatus: {
    //   description: 'Look up the status of an order',
    //   parameters: z.object({ orderId: z.string() }),
    //   execute: async ({ orderId }, { signal }) => (await fetch(\`https://shop.example/orders/\${orderId}\`, { signal })).json(),
    // },
  },
} satisfies Config
`

/** Lines that `.gitignore` should have. */
export const ignored = ['node_modules/', '.env', '.millrace/']

export const ignoreText = `node_modules/

# API keys.
.env

# The log of all runs, including what users wrote.
.millrace/
`
